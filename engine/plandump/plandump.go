// Package plandump writes the plans that tests make, so that a refactoring can be compared with the
// code before it: 'make plan-diff BASE=COMMIT'.
package plandump

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"

	"github.com/holdfast-storage/holdfast/engine"
)

// Directory is the variable of the environment that names where plans are written. Unset: nowhere.
const Directory = "HOLDFAST_PLANS"

// Write adds a plan to the file of the test that made it, and returns the plan. It panics when the
// file cannot be written. Several goroutines may call it.
func Write(p *engine.Plan) *engine.Plan {
	dir := os.Getenv(Directory)
	if dir == "" {
		return p
	}
	text, err := json.Marshal(p)
	if err != nil {
		panic(fmt.Sprintf("while writing a plan as JSON: %v", err))
	}
	pkg, test := caller()
	if err := add(filepath.Join(dir, filepath.FromSlash(pkg), test+".jsonl"), steady(text)); err != nil {
		panic(fmt.Sprintf("while writing a plan: %v", err))
	}
	return p
}

// add appends a line to a file in one write, so that lines of parallel tests are not mixed.
func add(path string, line []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	if _, err = f.Write(append(line, '\n')); err != nil {
		_ = f.Close()
		return err
	}
	return f.Close()
}

// running matches what differs from run to run though the code is the same: times of the clock.
var running = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)`)

// steady leaves out times that are not those of a test's own clock, which stands in January 2026.
func steady(text []byte) []byte {
	return running.ReplaceAllFunc(text, func(at []byte) []byte {
		if strings.HasPrefix(string(at), "2026-01-") {
			return at
		}
		return []byte("NOW")
	})
}

// caller is the package, below the module, and the name of the test that runs.
func caller() (pkg, test string) {
	stack := make([]uintptr, 64)
	frames := runtime.CallersFrames(stack[:runtime.Callers(2, stack)])
	for {
		frame, more := frames.Next()
		at := strings.LastIndex(frame.Function, "/") + 1
		name, function, _ := strings.Cut(frame.Function[at:], ".")
		if function, _, _ = strings.Cut(function, "."); strings.HasPrefix(function, "Test") && strings.HasSuffix(frame.File, "_test.go") {
			_, below, _ := strings.Cut(frame.Function[:at], "holdfast/")
			return below + name, function
		}
		if !more {
			return "other", "other"
		}
	}
}
