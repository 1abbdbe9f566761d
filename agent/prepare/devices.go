package prepare

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-storage/holdfast/agent/service"
	"github.com/holdfast-storage/holdfast/agent/service/lvm"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// Find finds the devices that the Daemon names, by their identities. Unless the daemon runs, they
// are looked at anew. Devices that are not there are an error that IsMissing knows.
func (p *Preparer) Find(ctx context.Context, l *service.Local, running bool) error {
	if len(l.Daemon.Spec.Devices) == 0 {
		return nil
	}
	scan := p.Scans.Fresh
	if running {
		scan = p.Devices
	}
	ctx, cancel := context.WithTimeout(ctx, scanTimeout)
	defer cancel()
	devices, err := scan(ctx)
	if err != nil {
		return fmt.Errorf("while looking at the devices: %w", err)
	}
	l.Devices, l.Inventory = map[string]api.Device{}, devices
	var missing []error
	for _, want := range l.Daemon.Spec.Devices {
		dev, err := pick(devices, want)
		if m := (*missingDevice)(nil); errors.As(err, &m) {
			missing = append(missing, err)
			continue
		}
		if err != nil {
			return err
		}
		l.Devices[want.Name] = dev
	}
	return errors.Join(missing...)
}

// pick returns the one device with an identity. Two devices with the same one cannot be told apart,
// and neither is touched.
func pick(devices []api.Device, want api.DaemonDevice) (api.Device, error) {
	var found []api.Device
	for _, dev := range devices {
		if dev.ID == want.ID {
			found = append(found, dev)
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return api.Device{}, &missingDevice{want}
	}
	return api.Device{}, fmt.Errorf("%d devices of this host have the identity %s (%s, %s …): none of them was touched",
		len(found), want.ID, found[0].Path, found[1].Path)
}

// IsMissing says whether an error is about devices that are not on the host.
func IsMissing(err error) bool {
	var m *missingDevice
	return errors.As(err, &m)
}

// missingDevice says that a device is not on the host.
type missingDevice struct{ want api.DaemonDevice }

func (m *missingDevice) Error() string {
	return fmt.Sprintf("device %s is missing on this host: insert it again, or see 'holdfast get hosts' for its devices",
		m.want.ID)
}

// Activate has the kernel show the logical volumes that a daemon lies on and that lack, as after a
// boot of a machine that activates none by itself, and looks for the devices again. Any other
// device that lacks stays so. Lacking is the error of Find.
func (p *Preparer) Activate(ctx context.Context, l *service.Local, lacking error) error {
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
	if lacking = p.Find(ctx, l, false); IsMissing(lacking) {
		return errors.Join(append([]error{lacking}, failed...)...)
	}
	return lacking
}
