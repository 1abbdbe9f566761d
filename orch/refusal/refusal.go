// Package refusal is an answer by which a call of 'ceph orch' fails.
package refusal

import (
	"fmt"
	"syscall"
)

// Error is an answer that Ceph shows to its user: "Error EINVAL: message".
type Error struct {
	// Errno is the number of the error, negative, as Ceph's OrchestratorError has it.
	Errno int `json:"errno"`
	// Message is one sentence: state, cause, next step.
	Message string `json:"error"`
}

// Error is the sentence alone.
func (e *Error) Error() string { return e.Message }

// Errorf makes an Error with the errno of wrong input, -EINVAL.
func Errorf(format string, values ...any) *Error {
	return &Error{Errno: -int(syscall.EINVAL), Message: fmt.Sprintf(format, values...)}
}
