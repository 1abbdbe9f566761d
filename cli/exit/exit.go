// Package exit has the exit codes of the program, and errors that carry one.
package exit

// Exit codes of the program.
const (
	OK = 0
	// Failed: what was asked for was not done.
	Failed = 1
	// Usage: the command line is wrong; nothing was done.
	Usage = 2
	// Refused: what was refused was not done.
	Refused = 3
	// Timeout: it was accepted, and was not finished in time. It continues.
	Timeout = 4
	// Changes: nothing failed, and 'plan --exit-code' found changes.
	Changes = 5
)

// Error ends the program with a code.
type Error struct {
	Code int
	Err  error
}

func (e *Error) Error() string { return e.Err.Error() }
func (e *Error) Unwrap() error { return e.Err }

// ExitCode is the exit code of the program.
func (e *Error) ExitCode() int { return e.Code }

// With gives an error an exit code; no error stays none.
func With(code int, err error) error {
	if err == nil {
		return nil
	}
	return &Error{code, err}
}
