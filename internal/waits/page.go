package waits

import (
	"fmt"
	"strings"
)

const pageHead = `<!-- Made by 'make generate' from internal/waits/waits.go. Do not edit. -->
# Waits

Holdfast waits before it acts on an absence, so that a booting machine, a short cut of the network or an unfinished edit
triggers nothing. The environment variable ` + Variable + ` sets these times, for labs and tests:

    ` + Variable + `=agentSilent=10s,hostDead=30s holdfast server

It lists waits with their durations, separated by commas; the others keep their defaults. If a value is invalid, the
program ends at its start, with exit code 2.

- **In production leave it unset.** With low values Holdfast acts on short absences: it moves daemons, releases those of
  disconnected hosts and copies data, although the machine would have been back.
- Set it to the same value for all servers, because each may lead. A server with this variable logs it at its start.
  Agents and the command line do not need it.

| wait | default | meaning |
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
