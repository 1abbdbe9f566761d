package words

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Visible writes each character that a terminal acts on, or that changes the order of others, as an
// escape such as \x1b or \u202e. Ends of lines and tabs stay, and so does all that is seen.
func Visible(s string) string {
	if !strings.ContainsFunc(s, hidden) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case !hidden(r):
			b.WriteString(s[i : i+n])
		case r < 0x100:
			fmt.Fprintf(&b, `\x%02x`, r)
		case r < 0x10000:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			fmt.Fprintf(&b, `\U%08x`, r)
		}
		i += n
	}
	return b.String()
}

// hidden is what Visible writes as an escape: control characters, those of Unicode's formats, such as
// a change of direction, and bytes that are no text.
func hidden(r rune) bool {
	return r != '\n' && r != '\t' && (r == utf8.RuneError || unicode.Is(unicode.C, r) || unicode.In(r, unicode.Zl, unicode.Zp))
}

// Line is text of one line and at most n bytes: what a program or a device says of itself, ready to
// be reported. What is hidden is written as Visible does; an end of a line or a tab is a space.
func Line(s string, n int) string {
	s = strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' {
			return ' '
		}
		return r
	}, s)
	return Cut(Visible(strings.TrimSpace(s)), n)
}

// Text is Line for text of several lines, such as the end of a log. Of what is too long the end is kept.
func Text(s string, n int) string {
	if s = Visible(s); len(s) <= n {
		return s
	}
	const mark = "…"
	return mark + strings.ToValidUTF8(s[len(s)-n+len(mark):], "")
}

// JSON is text in JSON with the same values, in which what is hidden is written as JSON's own escapes.
func JSON(s string) string {
	if !strings.ContainsFunc(s, hidden) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		switch high, low := utf16.EncodeRune(r); {
		case !hidden(r):
			b.WriteRune(r)
		case r >= 0x10000:
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

// NewVisibleWriter returns a writer that passes on what it is given as Visible writes it. A character
// may be split between two writes. It is safe for concurrent use.
func NewVisibleWriter(to io.Writer) *VisibleWriter { return &VisibleWriter{to: to} }

// VisibleWriter is what NewVisibleWriter returns.
type VisibleWriter struct {
	to io.Writer

	mu sync.Mutex
	// rest is the beginning of a character, whose end is still to be written.
	rest []byte
}

// Unwrap is what a VisibleWriter writes to; any other writer is itself.
func Unwrap(w io.Writer) io.Writer {
	if v, ok := w.(*VisibleWriter); ok {
		return v.to
	}
	return w
}

// Write implements io.Writer.
func (w *VisibleWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := append(w.rest, p...)
	whole := len(all)
	for back := 1; back < utf8.UTFMax && back <= len(all); back++ {
		if utf8.RuneStart(all[len(all)-back]) {
			if !utf8.FullRune(all[len(all)-back:]) {
				whole -= back
			}
			break
		}
	}
	w.rest = append([]byte(nil), all[whole:]...)
	if _, err := w.to.Write([]byte(Visible(string(all[:whole])))); err != nil {
		return 0, err
	}
	return len(p), nil
}
