// Reasondoc writes the reference page of reasons from the table in the API.
package main

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/holdfast-storage/holdfast/api/reasons"
)

const head = `<!-- Made by 'make generate' from api/v1alpha1/reason.go. Do not edit. -->
# Reasons

A decision in the report of a StorageCluster (` + "`status.report.decisions`" + `) has a verdict, a reason
and a message. The message is for people, and may change in the next version. The reason is for programs, and keeps
its meaning. Later versions may add reasons.

    ` + "kubectl get storagecluster NAME -o jsonpath='{range .status.report.decisions[*]}{.object} {.verdict} {.reason}{\"\\n\"}{end}'" + `

A reason with "yes" in the last column does not end by itself, even if the verdict is Wait: a user has to act.

| reason | meaning | needs a user |
|---|---|---|
`

func page() string {
	var s strings.Builder
	s.WriteString(head)
	for _, reason := range slices.Sorted(maps.Keys(reasons.All)) {
		needs := ""
		if reason.NeedsPerson() {
			needs = "yes"
		}
		fmt.Fprintf(&s, "| %s | %s | %s |\n", reason, reasons.All[reason], needs)
	}
	return s.String()
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: reasondoc FILE")
		os.Exit(2)
	}
	if err := os.WriteFile(os.Args[1], []byte(page()), 0o644); err != nil {
		fmt.Fprintln(os.Stderr, "reasondoc:", err)
		os.Exit(1)
	}
}
