// Package pending has the error that says that something is not there yet and may come by itself.
package pending

import (
	"errors"
	"fmt"
)

// Error says what is waited for.
type Error struct{ what string }

// For returns an Error; its arguments are those of fmt.Sprintf.
func For(format string, args ...any) error { return &Error{fmt.Sprintf(format, args...)} }

func (e *Error) Error() string { return "waiting for " + e.what }

// Is says whether an error is, or wraps, one of this package.
func Is(err error) bool {
	var e *Error
	return errors.As(err, &e)
}
