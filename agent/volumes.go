package agent

import (
	"context"
	"errors"

	"github.com/holdfast-storage/holdfast/agent/service"
	"github.com/holdfast-storage/holdfast/agent/service/lvm"
)

// activate has the kernel show the logical volumes that a daemon lies on and that lack, as after a boot of a machine that activates none by itself, and
// looks for the devices again. Any other device that lacks stays so.
func (a *agent) activate(ctx context.Context, l *service.Local, lacking error) error {
	var failed []error
	tried := false
	for _, want := range l.Daemon.Spec.Devices {
		v, is := lvm.Parse(want.ID)
		if _, there := l.Devices[want.Name]; there || !is {
			continue
		}
		tried = true
		failed = append(failed, v.Activate(ctx))
	}
	if !tried {
		return lacking
	}
	if lacking = a.findDevices(ctx, l, false); isMissing(lacking) {
		return errors.Join(append([]error{lacking}, failed...)...)
	}
	return lacking
}
