package screen

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/pflag"

	"github.com/holdfast-storage/holdfast/internal/words"
)

// Colour says when text has colours. The empty one is Auto. It is the value of a flag.
type Colour string

// The values of Colour.
const (
	// Auto colours what a terminal shows, unless NO_COLOR is set: https://no-color.org.
	Auto   Colour = "auto"
	Always Colour = "always"
	Never  Colour = "never"
)

var _ pflag.Value = new(Colour)

// Bind adds the flag --color.
func (c *Colour) Bind(flags *pflag.FlagSet) {
	*c = Auto
	flags.Var(c, "color", "colours: auto (on a terminal, unless $NO_COLOR is set), always or never")
}

// String implements pflag.Value.
func (c *Colour) String() string { return string(*c) }

// Type implements pflag.Value.
func (*Colour) Type() string { return "WHEN" }

// Set implements pflag.Value.
func (c *Colour) Set(value string) error {
	switch Colour(value) {
	case Auto, Always, Never:
		*c = Colour(value)
		return nil
	}
	return fmt.Errorf("use %s, %s or %s", Auto, Always, Never)
}

// On says whether text that is written to out has colours.
func (c Colour) On(out io.Writer) bool {
	switch c {
	case Always:
		return true
	case Never:
		return false
	default:
		return os.Getenv("NO_COLOR") == "" && Of(out) != nil
	}
}

// Print prints rows once: wrapped at the width of a terminal, whole elsewhere.
func Print(out io.Writer, colour Colour, rows []string) {
	width := 0
	if t := Of(out); t != nil {
		width, _ = t.size()
	}
	write(out, colour, Fit(rows, width), Paint)
}

// Report prints the text of a plan.
func Report(out io.Writer, colour Colour, text string) {
	rows := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	for i := range rows {
		rows[i] = Plain(rows[i])
	}
	write(out, colour, rows, PaintPlan)
}

func write(out io.Writer, colour Colour, rows []string, paint func(string) string) {
	if colour.On(out) {
		for i := range rows {
			rows[i] = paint(rows[i])
		}
		out = words.Unwrap(out) // the rows are plain but for their colours
	}
	fmt.Fprintln(out, strings.Join(rows, "\n"))
}
