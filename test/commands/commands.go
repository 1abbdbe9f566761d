// Package commands collects the commands that texts of the program tell people to run, so that tests can try each.
package commands

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Command is a command that a text has in single quotation marks.
type Command struct {
	// Text is the command as the text has it, with verbs such as %s where names will be.
	Text string
	// Where is the file that has it.
	Where string
}

// rooms are the directories whose texts people read.
var rooms = []string{
	"action", "agent", "api", "cli", "control", "csi", "driver", "engine", "internal",
	"leader", "orch",
	"platform", "propose",
}

// All are the commands that begin with a program's name, in the packages below root, each text once and sorted.
func All(root, program string) ([]Command, error) {
	quoted := regexp.MustCompile(`'(` + regexp.QuoteMeta(program) + ` [^']+)'`)
	found := map[string]string{}
	for _, room := range rooms {
		err := filepath.WalkDir(filepath.Join(root, room), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			texts, err := textsOf(path)
			for _, text := range texts {
				for _, match := range quoted.FindAllStringSubmatch(text, -1) {
					found[match[1]] = path
				}
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	var all []Command
	for _, text := range slices.SortedFunc(maps.Keys(found), cmp.Compare[string]) {
		all = append(all, Command{text, found[text]})
	}
	return all, nil
}

// textsOf are the string constants of a file; those that are added to each other are one.
func textsOf(path string) (texts []string, err error) {
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		return nil, fmt.Errorf("while reading %s: %w", path, err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		e, ok := n.(ast.Expr)
		if !ok {
			return true
		}
		text, whole := textOf(e)
		if whole && text != "" {
			texts = append(texts, text)
		}
		return !whole
	})
	return texts, nil
}

// textOf is what an expression of strings comes to. What is no constant is %s.
func textOf(e ast.Expr) (text string, whole bool) {
	switch x := e.(type) {
	case *ast.BasicLit:
		if x.Kind != token.STRING {
			return "", false
		}
		text, err := strconv.Unquote(x.Value)
		return text, err == nil
	case *ast.ParenExpr:
		return textOf(x.X)
	case *ast.BinaryExpr:
		if x.Op != token.ADD {
			return "", false
		}
		a, left := textOf(x.X)
		b, right := textOf(x.Y)
		if !left && !right {
			return "", false
		}
		if !left {
			a = "%s"
		}
		if !right {
			b = "%s"
		}
		return a + b, true
	}
	return "", false
}

var (
	verb = regexp.MustCompile(`%(\[\d+\])?[a-z+]`)
	// appended is a verb that adds further words, or none.
	appended = regexp.MustCompile(`([a-z])%s`)
	list     = regexp.MustCompile(` ?(…|\.\.\.)`)
)

// examples are what names in capital letters stand for.
var examples = map[string]string{
	"FLAG": "noout", "PG": "1.0", "POOL": "web", "FS": "home", "CODE": "OSD_DOWN", "ID": "1", "N": "1", "osd.N": "osd.1",
	"mon.N": "mon.a", "mon.NAME": "mon.a", "mds.NAME": "mds.a", "WHO": "osd.1", "OSD": "osd.1", "DEVICE": "dev",
	"RELEASE": "pacific",
	"NAME":    "n1", "HOST": "h1", "FILE": "f.yaml", "ENTITY": "client.a", "ADDRESS": "10.0.0.1",
	"KIND/NAME": "pool/web", "KIND": "pool", "COMMAND": "get",
}

// Words are the words of a command, with an example for each name that it leaves open.
func (c Command) Words() []string {
	text := verb.ReplaceAllString(appended.ReplaceAllString(c.Text, "$1"), "x1")
	words := strings.Fields(list.ReplaceAllString(text, ""))
	for i, w := range words {
		words[i] = Example(w)
	}
	return words
}

// Example is a word of a command, with an example for a name in capital letters.
func Example(word string) string {
	if example := examples[word]; example != "" {
		return example
	}
	if flag, name, is := strings.Cut(word, "="); is && examples[name] != "" {
		return flag + "=" + examples[name]
	}
	return word
}
