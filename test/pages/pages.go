// Package pages reads the code that pages of Markdown have, so that tests can try each command and
// each manifest.
package pages

import (
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Block is a block of code of a page.
type Block struct {
	// File and Line say where its first line is.
	File string
	Line int
	// Language is what stands behind the fence, such as yaml.
	Language string
	// Note is the text of the comment directly above the block, <!-- run: NOTE -->, or of that of
	// the whole page, <!-- page: NOTE -->.
	Note string
	// Marks are the other comments above the block, and the placeholders of the page up to here.
	Marks []Mark
	// Lines are its lines, without the indentation that all have.
	Lines []string
}

// Text is the block in one piece.
func (b Block) Text() string { return strings.Join(b.Lines, "\n") + "\n" }

// Where is its place, for messages.
func (b Block) Where() string { return fmt.Sprintf("%s:%d", b.File, b.Line) }

// Mark is a comment that says something to the reader of a test:
//
//	<!-- with: WORD=VALUE -->     from here on to the end of the page, WORD stands for VALUE, which a
//	                              shell expands when the word is typed
//	<!-- before: SCRIPT -->       the situation in which the next block is typed
//	<!-- not: BEGINNING, REASON --> no command of the next block that begins so is typed
//	<!-- exits: N BEGINNING -->   a command of the next block that begins so ends with this code
//	<!-- ctrl-c: BEGINNING -->    a command that begins so runs until the reader ends it
//
// A beginning with a $ behind is a whole command.
type Mark struct{ Kind, Text string }

// Span is code within a line of prose.
type Span struct {
	File string
	Line int
	Text string
}

var (
	fence = regexp.MustCompile("^( *)```(\\w*)$")
	note  = regexp.MustCompile(`^<!-- (run|page|with|before|not|exits|ctrl-c): (.*) -->$`)
	span  = regexp.MustCompile("`([^`]+)`")
)

// Files are the pages below root for users, without those of the decisions.
func Files(root string) (all []string, err error) {
	err = filepath.WalkDir(filepath.Join(root, "docs"), func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && d.Name() == "decisions":
			return filepath.SkipDir
		case filepath.Ext(path) == ".md":
			all = append(all, path)
		}
		return nil
	})
	return append(all, filepath.Join(root, "README.md"), filepath.Join(root, "CONTRIBUTING.md")), err
}

// Read returns the blocks and the spans of a page.
func Read(file string) (blocks []Block, spans []Span, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, nil, fmt.Errorf("while reading a page: %w", err)
	}
	r := reader{file: file}
	for i, line := range strings.Split(strings.TrimSuffix(string(text), "\n"), "\n") {
		r.take(i+1, line)
	}
	r.end()
	return r.blocks, r.spans, nil
}

// reader reads a page line by line.
type reader struct {
	file   string
	blocks []Block
	spans  []Span
	// open is the block that is being read, with a fence or indented.
	open   *Block
	fenced bool
	// note and marks are for the next block, page and words for all that follow.
	note, page   string
	marks, words []Mark
	// listed says that the lines belong to an item of a list, where indentation makes no code.
	listed bool
}

func (r *reader) take(number int, line string) {
	found := fence.FindStringSubmatch(line)
	switch {
	case r.fenced && found != nil:
		r.end()
	case r.fenced:
		r.open.Lines = append(r.open.Lines, line)
	case found != nil:
		r.end()
		r.begin(number+1, found[2])
		r.fenced = true
	case strings.HasPrefix(line, "    ") && !r.listed:
		if r.open == nil {
			r.begin(number, "")
		}
		r.open.Lines = append(r.open.Lines, line)
	case strings.TrimSpace(line) == "":
		if r.open != nil {
			r.open.Lines = append(r.open.Lines, "")
		}
	default:
		r.prose(number, line)
	}
}

func (r *reader) begin(number int, language string) {
	marks := slices.Concat(r.words, r.marks)
	r.open = &Block{File: r.file, Line: number, Language: language, Note: cmp.Or(r.note, r.page), Marks: marks}
	r.note, r.marks = "", nil
}

// mark takes a comment.
func (r *reader) mark(kind, text string) {
	switch kind {
	case "run":
		r.note = text
	case "page":
		r.page = text
	case "with":
		r.words = append(r.words, Mark{kind, text})
	default:
		r.marks = append(r.marks, Mark{kind, text})
	}
}

func (r *reader) prose(number int, line string) {
	r.end()
	if found := note.FindStringSubmatch(line); found != nil {
		r.mark(found[1], found[2])
		return
	}
	trimmed := strings.TrimSpace(line)
	r.listed = strings.HasPrefix(trimmed, "- ") || regexp.MustCompile(`^\d+\. `).MatchString(trimmed) ||
		r.listed && strings.HasPrefix(line, "  ")
	for _, found := range span.FindAllStringSubmatch(line, -1) {
		r.spans = append(r.spans, Span{r.file, number, found[1]})
	}
}

// end ends the open block.
func (r *reader) end() {
	if r.open == nil {
		return
	}
	lines := r.open.Lines
	for len(lines) > 0 && lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	indent := 1 << 10
	for _, line := range lines {
		if line != "" {
			indent = min(indent, len(line)-len(strings.TrimLeft(line, " ")))
		}
	}
	for i, line := range lines {
		if line != "" {
			lines[i] = line[indent:]
		}
	}
	r.open.Lines = lines
	r.blocks = append(r.blocks, *r.open)
	r.open, r.fenced = nil, false
}

// Manifests are the YAML documents of objects of Holdfast that a block has, also within a
// here-document.
func (b Block) Manifests() (all []string) {
	var open []string
	for _, line := range append(b.Lines, "---") {
		switch {
		case strings.HasPrefix(line, "apiVersion: holdfast.io/"):
			open = []string{line}
		case open != nil && isEnd.MatchString(line):
			all = append(all, strings.Join(open, "\n")+"\n")
			open = nil
		case open != nil:
			open = append(open, line)
		}
	}
	return all
}

// isEnd is a line that ends a document: a separator, or the word that ends a here-document.
var isEnd = regexp.MustCompile(`^(---|\.|[A-Z]{3,})$`)
