package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/holdfast-storage/holdfast/agent/service"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// scanTimeout bounds a scan of the devices; a single disk that does not answer ends it.
const scanTimeout = time.Minute

// prepare makes a daemon ready to start. While it runs, only its files are touched, and its devices if its service agent keeps
// them. The daemon may start as far as its place is returned, also with an error.
func (a *agent) prepare(ctx context.Context, d *api.Daemon, t *serviceType, secrets map[string]*corev1.Secret, running bool) (*service.Local, error) {
	l := a.local(d)
	for _, dir := range []struct {
		path string
		perm os.FileMode
	}{{l.Data, 0o700}, {l.Log, 0o750}, {l.Run, 0o755}} {
		if err := os.MkdirAll(dir.path, dir.perm); err != nil {
			return nil, fmt.Errorf("while making the daemon's directories: %w", err)
		}
	}
	keys, err := deviceKeys(d, secrets)
	if err != nil {
		return nil, err
	}
	l.Keys = keys
	keeper, keeps := t.agent.(service.DeviceKeeper)
	lacking := a.findDevices(ctx, l, running && !keeps)
	if isMissing(lacking) { // also while it runs: after a boot the runtime may have started the process already, which is about to fail
		lacking = a.activate(ctx, l, lacking)
	}
	if maker, makes := t.agent.(service.DeviceMaker); makes && !running && isMissing(lacking) {
		lacking = a.makeDevices(ctx, l, maker, lacking)
	}
	if lacking != nil && (!keeps || !isMissing(lacking)) {
		return nil, lacking
	}
	if err := fillWords(l); err != nil {
		return nil, err
	}
	if err := writeFiles(l, secrets); err != nil {
		return nil, err
	}
	if !running {
		if err := a.claimed(l, func() error { return t.agent.ConfigureLocalService(ctx, l) }); err != nil {
			return nil, err
		}
	}
	if !keeps {
		return l, nil
	}
	if err := errors.Join(lacking, a.claimed(l, func() error { return keeper.ConfigureDevices(ctx, l) })); err != nil {
		return l, &deviceError{err}
	}
	return l, nil
}

// makeDevices has the service agent make those of a daemon's devices that are parts of others, and looks again.
func (a *agent) makeDevices(ctx context.Context, l *service.Local, maker service.DeviceMaker, lacking error) error {
	for _, want := range l.Daemon.Spec.Devices {
		if _, ok := l.Devices[want.Name]; !ok && want.Of == "" {
			return lacking
		}
	}
	if err := fillWords(l); err != nil {
		return err
	}
	if err := a.claimed(l, func() error { return maker.MakeDevices(ctx, l) }); err != nil {
		return err
	}
	return a.findDevices(ctx, l, false)
}

// deviceError is about devices of a daemon that goes on without them.
type deviceError struct{ error }

func (e *deviceError) Unwrap() error { return e.error }

// local is the daemon's place on this host, without its devices.
func (a *agent) local(d *api.Daemon) *service.Local {
	key := client.ObjectKeyFromObject(d)
	return &service.Local{Daemon: d, Data: a.paths.dataOf(key), Run: a.paths.runOf(key), Log: a.paths.logOf(key)}
}

// claimed calls the service agent with the devices claimed meanwhile.
func (a *agent) claimed(l *service.Local, prepare func() error) error {
	if len(l.Devices) > 0 {
		var ids []string
		for _, dev := range l.Devices {
			ids = append(ids, dev.ID)
		}
		release := a.Claims.hold(ids, fmt.Sprintf("is being prepared for %s.%s", l.Daemon.Spec.Type, l.Daemon.Spec.ID))
		// What is on the devices has changed, and nothing but udevd would tell.
		defer a.askReport()
		defer release()
	}
	return prepare()
}

// findDevices finds the devices that the Daemon names, by their identities. Unless the daemon runs, they are looked at anew.
func (a *agent) findDevices(ctx context.Context, l *service.Local, running bool) error {
	if len(l.Daemon.Spec.Devices) == 0 {
		return nil
	}
	scan := a.scans.fresh
	if running {
		scan = a.Inventory.Devices
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

// pick returns the one device with an identity. Two devices with the same one cannot be told apart, and neither is touched.
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

// isMissing says whether an error is about devices that are not on the host.
func isMissing(err error) bool {
	var m *missingDevice
	return errors.As(err, &m)
}

// missingDevice says that a device is not on the host.
type missingDevice struct{ want api.DaemonDevice }

func (m *missingDevice) Error() string {
	return fmt.Sprintf("device %s is missing on this host: insert it again, or see 'holdfast get hosts' for its devices", m.want.ID)
}
