package engine

import "time"

// Event is one difference between two views. Codes are listed in codes.go.
type Event struct {
	Code    Code
	Object  string
	Message string
	Time    time.Time
}
