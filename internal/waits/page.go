package waits

import (
	"fmt"
	"strings"
)

const pageHead = `<!-- Made by 'make generate' from internal/waits/waits.go. Do not edit. -->
# Waits

Holdfast waits before it acts on an absence, so that a machine that boots, a network that is mended or a person who is
not done yet triggers nothing. The environment variable ` + Variable + ` sets these times, for labs and tests:

    ` + Variable + `=agentSilent=10s,hostDead=30s holdfast server

It names waits with their durations, separated by commas; those that it does not name keep their defaults. What cannot
be read ends the program at its start, with exit code 2.

- **In production leave it unset.** With low values Holdfast acts on short absences: it moves daemons, lets those of
  silent hosts go and copies data, for a machine that would have been back.
- Set it to the same value for all servers: each may come to lead. A server that has it says so in its log at its start.
- Set it for ` + "`holdfast plan`, `apply`, `delete`" + ` and all else that plans, too: they plan themselves, and would
  tell another plan than the leader's. Agents need none of them.

| wait | default | what it is for |
|---|---|---|
`

// Page is docs/reference/waits.md.
func Page() string {
	var b strings.Builder
	b.WriteString(pageHead)
	for _, x := range List() {
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", x.Name, short(x), x.Meaning)
	}
	return b.String()
}

// short is a default as people write it: 2m instead of 2m0s.
func short(x Wait) string {
	text := x.Default.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, zero) {
			text = strings.TrimSuffix(text, zero[1:])
		}
	}
	return text
}
