package screen

import (
	"fmt"
	"io"
	"os"
	"strings"
	"unicode"

	"github.com/mattn/go-isatty"
	"golang.org/x/term"

	"github.com/holdfast-storage/holdfast/internal/words"
)

// indent is how far the later parts of a row that is wrapped are indented.
const indent = 6

// Terminal is a terminal on which rows are drawn, in the place of those drawn before.
type Terminal struct {
	file *os.File
	// Colour says whether it has colours.
	Colour Colour
	// drawn is the number of terminal rows of the picture that is there now.
	drawn int
}

// Of is the terminal that is written to; nil where it is none, or one that only shows text.
func Of(out io.Writer) *Terminal {
	f, ok := words.Unwrap(out).(*os.File)
	if !ok || os.Getenv("TERM") == "dumb" || !isatty.IsTerminal(f.Fd()) {
		return nil
	}
	return &Terminal{file: f}
}

// Draw puts the rows in the place of those drawn before.
func (t *Terminal) Draw(rows []string) {
	width, height := t.size()
	rows = Fit(rows, width)
	if len(rows) > height-1 {
		rows = append(rows[:height-2], "  …")
	}
	var b strings.Builder
	if t.drawn > 0 {
		fmt.Fprintf(&b, "\x1b[%dA", t.drawn)
	}
	coloured := t.Colour.On(t.file)
	for _, row := range rows {
		if coloured {
			row = Paint(row)
		}
		b.WriteString(row + "\x1b[K\n")
	}
	b.WriteString("\x1b[J")
	io.WriteString(t.file, b.String()) //nolint:errcheck // a terminal that is gone needs no picture
	t.drawn = len(rows)
}

func (t *Terminal) size() (width, height int) {
	if w, h, err := term.GetSize(int(t.file.Fd())); err == nil && w > 0 && h > 2 {
		return w, h
	}
	return 80, 24
}

// Fit wraps rows at the width of a terminal; 0 stands for any. A message may hold what a daemon wrote, and nothing of
// that may move the cursor.
func Fit(rows []string, width int) (all []string) {
	for _, row := range rows {
		all = append(all, Wrap(Plain(row), width, indent)...)
	}
	return all
}

// Plain makes one line of a text: a space stands in the place of each control character.
func Plain(text string) string {
	return words.Visible(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text))
}
