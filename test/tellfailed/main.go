// Tellfailed hands on what 'go test' prints, and tells once more at its end which tests failed, with the last of what they said: a log of ten thousand lines
// of servers ends with what matters.
package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
)

const (
	// maxHead and maxSaid bound what is told of a test, in bytes.
	maxHead, maxSaid = 300, 1500
	// maxLine is how long a line may be, in bytes; what comes after a longer one is not looked at.
	maxLine = 16 << 20
)

func main() {
	if err := tell(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "tellfailed:", err)
		os.Exit(1)
	}
}

// tell copies in to out, each line at once, and ends with what failed.
func tell(in io.Reader, out io.Writer) error {
	l := &listener{said: map[string]string{}}
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		if _, err := fmt.Fprintln(out, lines.Text()); err != nil {
			return err
		}
		l.hear(lines.Text())
	}
	if lines.Err() != nil { // the rest is handed on all the same
		_, err := io.Copy(out, in)
		return err
	}
	return l.report(out)
}

// failure is a test, or a package, that failed.
type failure struct{ head, said string }

// listener knows what was said: with -v a test says why before it fails, and without -v after.
type listener struct {
	failed []failure
	// said is what each test said that did not end, and test the one that speaks.
	said map[string]string
	test string
	// after is set while the lines belong to the last failure.
	after bool
}

var (
	begins  = regexp.MustCompile(`^=== (?:RUN|CONT|NAME|PAUSE)\s+(\S+)`)
	ends    = regexp.MustCompile(`^ *--- (FAIL|PASS|SKIP): (\S+)`)
	crashes = regexp.MustCompile(`^(panic: |fatal error: |WARNING: DATA RACE|FAIL\t)`)
	results = regexp.MustCompile(`^(ok|\?|PASS|FAIL)\b`)
	// says is a line of t.Error or t.Log, such as "    seat_test.go:12: it is gone".
	says = regexp.MustCompile(`^ *\w+_test\.go:\d+: `)
)

func (l *listener) hear(line string) {
	begun, ended := begins.FindStringSubmatch(line), ends.FindStringSubmatch(line)
	switch {
	case begun != nil:
		l.test = begun[1]
	case ended != nil:
		if l.after = ended[1] == "FAIL"; l.after {
			l.failed = append(l.failed, failure{line, l.said[ended[2]]})
		}
		delete(l.said, ended[2])
	case crashes.MatchString(line):
		l.failed, l.after = append(l.failed, failure{head: line}), false
	case results.MatchString(line):
		l.after = false
	case !says.MatchString(line):
	case l.after:
		last := &l.failed[len(l.failed)-1]
		last.said += line + "\n"
	default:
		l.said[l.test] += line + "\n"
	}
}

func (l *listener) report(out io.Writer) error {
	if len(l.failed) == 0 {
		return nil
	}
	var text strings.Builder
	text.WriteString("\nWhat failed:\n")
	for _, f := range l.failed {
		text.WriteString(f.head[:min(maxHead, len(f.head))] + "\n" + f.said[max(0, len(f.said)-maxSaid):])
	}
	_, err := io.WriteString(out, text.String())
	return err
}
