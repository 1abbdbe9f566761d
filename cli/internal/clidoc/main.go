// Clidoc writes the reference page of the command line from the commands in package cli.
package main

import (
	"fmt"
	"os"

	"github.com/holdfast-storage/holdfast/cli"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: clidoc FILE")
		os.Exit(2)
	}
	if err := os.WriteFile(os.Args[1], []byte(cli.Page()), 0o644); err != nil {
		fmt.Fprintln(os.Stderr, "clidoc:", err)
		os.Exit(1)
	}
}
