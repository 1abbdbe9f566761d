// Healthdoc writes the reference page of Ceph's health checks from the table in package health.
package main

import (
	"fmt"
	"os"

	"github.com/holdfast-storage/holdfast/driver/ceph/health"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: healthdoc FILE")
		os.Exit(2)
	}
	if err := os.WriteFile(os.Args[1], []byte(health.Page()), 0o644); err != nil {
		fmt.Fprintln(os.Stderr, "healthdoc:", err)
		os.Exit(1)
	}
}
