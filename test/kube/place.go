package kube

import (
	"context"
	"path/filepath"

	"github.com/holdfast-storage/holdfast/test/hosts"
)

// labPlace is a host of a lab, which has all ports to itself.
type labPlace struct{ host *hosts.Host }

func (l *labPlace) address() string { return l.host.IP }
func (l *labPlace) ports() [3]int   { return [3]int{6443, 2379, 2380} }
func (l *labPlace) nodes() bool     { return true }

func (l *labPlace) launch(t hosts.T, program string, args ...string) Process {
	t.Helper()
	return l.host.Launch(t, filepath.Base(program), l.host.Command(context.Background(), program, args...))
}
