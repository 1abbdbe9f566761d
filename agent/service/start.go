package service

import (
	"log/slog"
	"path/filepath"

	"github.com/holdfast-storage/holdfast/agent/runtime"
)

// BeforeStart has service agents do what their daemons need on the host before they start. Records
// of earlier versions name no type.
func BeforeStart(services []ServiceAgent, log *slog.Logger) func(runtime.Process) {
	return func(p runtime.Process) {
		for _, s := range services {
			named := p.Of.Type == s.Name() || len(p.Command) > 0 && filepath.Base(p.Command[0]) == s.Name()
			x, is := s.(Starter)
			if !named || !is {
				continue
			}
			if err := x.BeforeStart(p); err != nil {
				log.Warn("cannot prepare the host for a daemon; starting it all the same", "daemon", p.Name, "error", err)
			}
		}
	}
}
