// Eventdoc writes the reference page of event codes from the catalogue in package engine.
package main

import (
	"fmt"
	"os"

	"github.com/holdfast-storage/holdfast/engine/internal/eventpage"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: eventdoc FILE")
		os.Exit(2)
	}
	if err := os.WriteFile(os.Args[1], []byte(eventpage.Page()), 0o644); err != nil {
		fmt.Fprintln(os.Stderr, "eventdoc:", err)
		os.Exit(1)
	}
}
