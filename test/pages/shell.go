package pages

import (
	"regexp"
	"slices"
	"strings"
)

// Line is a command line of a block.
type Line struct {
	Where string
	// Text is the line without prompt and comment, with the lines that continue it.
	Text string
}

// comment is the end of a line that a shell ignores.
var comment = regexp.MustCompile(`(^|\s)#( .*|$)`)

// CommandLines are the lines of a block that a reader types. Where a line has the prompt $, only
// lines with a prompt are commands; all others are output.
func (b Block) CommandLines() (all []Line) {
	prompted := slices.ContainsFunc(b.Lines, func(l string) bool { return strings.HasPrefix(l, "$ ") })
	if b.Language == "yaml" || b.Language == "go" || b.Language == "mermaid" {
		return nil
	}
	for _, line := range b.Lines {
		text, is := strings.CutPrefix(line, "$ ")
		if prompted && !is {
			continue
		}
		if text = strings.TrimSpace(comment.ReplaceAllString(text, "")); text != "" {
			all = append(all, Line{b.Where(), text})
		}
	}
	return all
}

// Calls are the words behind each call of a program in a line, also behind sudo, a pipe, in $(…) or
// behind --.
func Calls(line, program string) (all [][]string) {
	for _, command := range commands(line) {
		for i, word := range command {
			if word != program || i > 0 && !slices.Contains(before, command[i-1]) && !assigns.MatchString(command[i-1]) {
				continue
			}
			all = append(all, command[i+1:])
			break
		}
	}
	return all
}

// before are the words that may stand before a program's name.
var before = []string{"sudo", "--", "nice", "exec", "time"}

var assigns = regexp.MustCompile(`^[A-Z_]+=`)

// commands splits a line of a shell into commands, and these into words. A substitution is a
// command of its own, and "x" in the command that has it.
func commands(line string) (all [][]string) {
	s := splitter{rest: []rune(line)}
	s.split(0)
	return s.all
}

type splitter struct {
	rest []rune
	all  [][]string
}

// split reads until the rune that closes a substitution, or to the end of the line.
func (s *splitter) split(closing rune) {
	var words []string
	var word strings.Builder
	has := false
	endWord := func() {
		if has {
			words = append(words, word.String())
		}
		word.Reset()
		has = false
	}
	endCommand := func() {
		endWord()
		if len(words) > 0 {
			s.all = append(s.all, words)
		}
		words = nil
	}
	var quote rune
	for len(s.rest) > 0 {
		c := s.rest[0]
		s.rest = s.rest[1:]
		switch {
		case (c == '$' || c == '<' && quote == 0) && quote != '\'' && len(s.rest) > 0 && s.rest[0] == '(':
			s.rest = s.rest[1:]
			s.split(')')
			word.WriteRune('x')
			has = true
		case quote != 0 && c == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(c)
		case c == '"' || c == '\'':
			quote, has = c, true
		case closing != 0 && c == closing:
			endCommand()
			return
		case c == ' ' || c == '\t':
			endWord()
		case strings.ContainsRune(";|&<>", c):
			if c == '>' || c == '<' { // the file is no argument
				endWord()
				words = append(words, ">")
				continue
			}
			endCommand()
		default:
			word.WriteRune(c)
			has = true
		}
	}
	endCommand()
}

// WithoutRedirections leaves out the files that a command reads and writes by the shell.
func WithoutRedirections(words []string) []string {
	if i := slices.Index(words, ">"); i >= 0 {
		return words[:i]
	}
	return words
}
