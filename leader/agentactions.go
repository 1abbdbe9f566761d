package leader

import (
	"context"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/engine/devices"
	"github.com/holdfast-storage/holdfast/engine/hosts"
)

// devices are the questions about devices, which the drivers that label theirs answer.
func (c Config) devices(h hosts.Config) devices.Config {
	d := devices.Config{Store: c.Store, Planners: h.Planners, Labelers: map[api.StorageType]engine.Labeler{}}
	for _, driver := range c.Drivers {
		if l, ok := driver.(engine.Labeler); ok {
			d.Labelers[driver.Type()] = l
		}
	}
	return d
}

// accept looks at the actions of agents before they are accepted.
func (c Config) accept(h hosts.Config) func(context.Context, *api.Action) error {
	onDevices, onDaemons := c.devices(h), hosts.AcceptAgents(h)
	return func(ctx context.Context, a *api.Action) error {
		if devices.Knows(a) {
			return onDevices.Accept(ctx, a)
		}
		return onDaemons(ctx, a)
	}
}

// ask says what is against the actions of agents whose turn has come.
func (c Config) ask(h hosts.Config) func(context.Context, *api.Action) (string, error) {
	onDevices, onDaemons := c.devices(h), hosts.AskAgents(h)
	return func(ctx context.Context, a *api.Action) (string, error) {
		if devices.Knows(a) {
			return onDevices.Ask(ctx, a)
		}
		return onDaemons(ctx, a)
	}
}
