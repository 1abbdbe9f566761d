// Waitsdoc writes the reference page of waits from the list in package waits.
package main

import (
	"fmt"
	"os"

	"github.com/holdfast-storage/holdfast/internal/waits"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: waitsdoc FILE")
		os.Exit(2)
	}
	if err := os.WriteFile(os.Args[1], []byte(waits.Page()), 0o644); err != nil {
		fmt.Fprintln(os.Stderr, "waitsdoc:", err)
		os.Exit(1)
	}
}
