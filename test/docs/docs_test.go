// Package docs checks the pages that people read: links lead somewhere, prose is wrapped, and each room has its row in the
// table of CONTRIBUTING.
package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

const (
	root = "../.."
	// widest is how wide a line of prose may be. Tables and code have no bound.
	widest = 120
)

// page is one page of Markdown, without its code.
type page struct {
	file    string
	prose   []line
	anchors map[string]bool
}

type line struct {
	number int
	text   string
}

// allPages reads all pages.
func allPages(t *testing.T) map[string]page {
	t.Helper()
	all := map[string]page{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != root && strings.HasPrefix(d.Name(), ".") {
			return filepath.SkipDir
		}
		if filepath.Ext(path) == ".md" {
			all[path] = read(t, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	delete(all, root+"/test/faults/faults.md") // the test beside it reads that list
	if len(all) < 40 {
		t.Fatalf("found %d pages only: the test looks in the wrong place", len(all))
	}
	return all
}

func read(t *testing.T, file string) page {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	p := page{file: file, anchors: map[string]bool{}}
	fenced := false
	for i, l := range strings.Split(string(text), "\n") {
		if strings.HasPrefix(strings.TrimSpace(l), "```") {
			fenced = !fenced
			continue
		}
		if fenced || strings.HasPrefix(l, "    ") {
			continue
		}
		if title := strings.TrimLeft(l, "#"); title != l {
			p.anchors[anchor(title)] = true
		}
		p.prose = append(p.prose, line{i + 1, l})
	}
	return p
}

// anchor is what GitHub makes of a title.
func anchor(title string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
			return unicode.ToLower(r)
		case r == ' ':
			return '-'
		}
		return -1
	}, strings.TrimSpace(title))
}

// code is code within a line.
var code = regexp.MustCompile("`[^`]+`")

var link = regexp.MustCompile(`\]\(([^)\s]+)\)`)

func TestLinks(t *testing.T) {
	all := allPages(t)
	links := 0
	for _, p := range all {
		for _, l := range p.prose {
			for _, found := range link.FindAllStringSubmatch(code.ReplaceAllString(l.text, ""), -1) {
				target, fragment, _ := strings.Cut(found[1], "#")
				if strings.Contains(target, "://") {
					continue
				}
				links++
				file := p.file
				if target != "" {
					file = filepath.Join(filepath.Dir(p.file), target)
				}
				if _, err := os.Stat(file); err != nil {
					t.Errorf("%s:%d: the link %s leads nowhere", p.file, l.number, found[1])
				} else if fragment != "" && !all[file].anchors[fragment] {
					t.Errorf("%s:%d: %s has no section #%s", p.file, l.number, file, fragment)
				}
			}
		}
	}
	if links < 100 {
		t.Errorf("found %d links only: the test does not see them", links)
	}
}

func TestWidth(t *testing.T) {
	for _, p := range allPages(t) {
		for _, l := range p.prose {
			if n := utf8.RuneCountInString(l.text); n > widest && !strings.HasPrefix(l.text, "|") && !strings.HasPrefix(l.text, "<!--") {
				t.Errorf("%s:%d: %d characters: wrap it at %d", p.file, l.number, n, widest)
			}
		}
	}
}

// TestRooms fails for a top-level directory that CONTRIBUTING does not explain.
func TestRooms(t *testing.T) {
	text, err := os.ReadFile(root + "/CONTRIBUTING.md")
	if err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !e.IsDir() || strings.HasPrefix(e.Name(), ".") || e.Name() == "bin" {
			continue
		}
		if !strings.Contains(string(text), "\n| `"+e.Name()+"/` |") {
			t.Errorf("the table of rooms in CONTRIBUTING.md has no row for %s/", e.Name())
		}
	}
}
