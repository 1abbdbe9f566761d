package pages

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Command is a command of a block as a reader types it, with its here-document.
type Command struct {
	// Line is where it begins in the file.
	Line int
	// Text is what is typed. Output are the lines that the page shows below it.
	Text   string
	Output []string
	// Reason says why no test types it; empty if one does.
	Reason string
	// Exit is the code with which it has to end.
	Exit int
	// Interrupted is a command that runs until the reader ends it.
	Interrupted bool
}

// Head is its first line without the comment.
func (c Command) Head() string {
	head, _, _ := strings.Cut(c.Text, "\n")
	return strings.TrimSpace(comment.ReplaceAllString(head, ""))
}

// noShell are the languages of blocks without commands.
var noShell = []string{"yaml", "go", "mermaid", "text", "json"}

// manifest is how a block begins that is a manifest, or a part of one.
var manifest = regexp.MustCompile(`^(apiVersion|kind|spec|metadata):`)

// hereDocument is the beginning of one, with the word that ends it.
var hereDocument = regexp.MustCompile(`<<-?(\w+|\.)$`)

// Commands are the commands of a block. Where a line has the prompt $, all others are output.
func (b Block) Commands() (all []Command) {
	if slices.Contains(noShell, b.Language) || len(b.Lines) == 0 || manifest.MatchString(b.Lines[0]) {
		return nil
	}
	prompted := slices.ContainsFunc(b.Lines, func(l string) bool { return strings.HasPrefix(l, "$ ") })
	end := ""
	for i, line := range b.Lines {
		text, is := strings.CutPrefix(line, "$ ")
		switch {
		case end != "":
			all[len(all)-1].Text += "\n" + line
			if line == end {
				end = ""
			}
		case prompted && !is:
			if len(all) > 0 {
				all[len(all)-1].Output = append(all[len(all)-1].Output, line)
			}
		case strings.TrimSpace(comment.ReplaceAllString(text, "")) != "":
			all = append(all, b.command(b.Line+i, text))
			if found := hereDocument.FindStringSubmatch(text); found != nil {
				end = found[1]
			}
		}
	}
	return all
}

// command is a command with what the marks say of it.
func (b Block) command(line int, text string) Command {
	c := Command{Line: line, Text: text}
	if reason, is := strings.CutPrefix(b.Note, "no, "); is {
		c.Reason = reason
	}
	for _, m := range b.Marks {
		if !m.fits(c) {
			continue
		}
		switch m.Kind {
		case "not":
			_, c.Reason, _ = strings.Cut(m.Text, ", ")
		case "ctrl-c":
			c.Interrupted = true
		case "exits":
			code, _, _ := strings.Cut(m.Text, " ")
			c.Exit, _ = strconv.Atoi(code)
		}
	}
	return c
}

// fits says whether a mark is for a command: it has its beginning, or all of it with a $ behind.
func (m Mark) fits(c Command) bool {
	beginning := m.Text
	switch m.Kind {
	case "not":
		beginning, _, _ = strings.Cut(m.Text, ", ")
	case "exits":
		_, beginning, _ = strings.Cut(m.Text, " ")
	case "ctrl-c":
	default:
		return false
	}
	if whole, is := strings.CutSuffix(beginning, "$"); is {
		return c.Head() == whole
	}
	return strings.HasPrefix(c.Text, beginning)
}

// Texts are the texts of the marks of a kind.
func (b Block) Texts(kind string) (all []string) {
	for _, m := range b.Marks {
		if m.Kind == kind {
			all = append(all, m.Text)
		}
	}
	return all
}

// Idle are the marks that no command of the block fits, which are mistakes.
func (b Block) Idle() (all []Mark) {
	for _, m := range b.Marks {
		general := m.Kind == "with" || m.Kind == "before"
		if !general && !slices.ContainsFunc(b.Commands(), m.fits) {
			all = append(all, m)
		}
	}
	return all
}
