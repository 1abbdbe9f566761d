// Package prepare makes a daemon ready to start on its host, as far as that is the same for all
// types: its directories, its devices by their identities, its files with the Secrets in them, and
// the words in its command. What a type needs beyond that its service agent does, whose methods are
// called here in their order.
package prepare

import (
	"context"
	"errors"
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"

	"github.com/holdfast-storage/holdfast/agent/service"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// Preparer makes the daemons of one host ready. It is safe for concurrent use, for different
// daemons.
type Preparer struct {
	// Devices are the devices of the host as they were seen last; Scans looks at them anew.
	Devices func(ctx context.Context) ([]api.Device, error)
	Scans   *Scans
	// Claims are held while a service agent works on devices.
	Claims *Claims
	// Changed is called after a service agent has worked on devices.
	Changed func()
}

// Prepare makes a daemon ready to start, at a place that has its Daemon and directories. While it
// runs, only its files are touched, and its devices if its service agent keeps them. The daemon may
// start if its place is returned, also with an error, which is a *DeviceError then.
func (p *Preparer) Prepare(
	ctx context.Context, l *service.Local, t service.ServiceAgent, secrets map[string]*corev1.Secret, running bool,
) (*service.Local, error) {
	if err := makeDirectories(l); err != nil {
		return nil, err
	}
	keys, err := deviceKeys(l.Daemon, secrets)
	if err != nil {
		return nil, err
	}
	l.Keys = keys
	keeper, keeps := t.(service.DeviceKeeper)
	lacking := p.devices(ctx, l, t, running)
	if lacking != nil && (!keeps || !IsMissing(lacking)) {
		return nil, lacking
	}
	if err := FillWords(l); err != nil {
		return nil, err
	}
	if err := writeFiles(l, secrets); err != nil {
		return nil, err
	}
	if !running {
		if err := p.claimed(l, func() error { return t.ConfigureLocalService(ctx, l) }); err != nil {
			return nil, err
		}
	}
	if !keeps {
		return l, nil
	}
	if err := errors.Join(lacking, p.claimed(l, func() error { return keeper.ConfigureDevices(ctx, l) })); err != nil {
		return l, &DeviceError{err}
	}
	return l, nil
}

func makeDirectories(l *service.Local) error {
	for _, dir := range []struct {
		path string
		perm os.FileMode
	}{{l.Data, 0o700}, {l.Log, 0o750}, {l.Run, 0o755}} {
		if err := os.MkdirAll(dir.path, dir.perm); err != nil {
			return fmt.Errorf("while making the daemon's directories: %w", err)
		}
	}
	return nil
}

// devices finds the devices of a daemon, and has those made that its service agent can make. Also
// while it runs volumes are activated: after a boot the runtime may have started the process
// already, which is about to fail.
func (p *Preparer) devices(ctx context.Context, l *service.Local, t service.ServiceAgent, running bool) error {
	_, keeps := t.(service.DeviceKeeper)
	lacking := p.Find(ctx, l, running && !keeps)
	if IsMissing(lacking) {
		lacking = p.Activate(ctx, l, lacking)
	}
	if maker, makes := t.(service.DeviceMaker); makes && !running && IsMissing(lacking) {
		lacking = p.makeDevices(ctx, l, maker, lacking)
	}
	return lacking
}

// makeDevices has the service agent make those of a daemon's devices that are parts of others, and
// looks again.
func (p *Preparer) makeDevices(ctx context.Context, l *service.Local, maker service.DeviceMaker, lacking error) error {
	for _, want := range l.Daemon.Spec.Devices {
		if _, ok := l.Devices[want.Name]; !ok && want.Of == "" {
			return lacking
		}
	}
	if err := FillWords(l); err != nil {
		return err
	}
	if err := p.claimed(l, func() error { return maker.MakeDevices(ctx, l) }); err != nil {
		return err
	}
	return p.Find(ctx, l, false)
}

// DeviceError is about devices of a daemon that goes on without them.
type DeviceError struct{ error }

// Unwrap returns what is wrong with them.
func (e *DeviceError) Unwrap() error { return e.error }

// claimed calls the service agent with the devices claimed meanwhile.
func (p *Preparer) claimed(l *service.Local, prepare func() error) error {
	if len(l.Devices) > 0 {
		var ids []string
		for _, dev := range l.Devices {
			ids = append(ids, dev.ID)
		}
		release := p.Claims.Hold(ids, fmt.Sprintf("is being prepared for %s.%s", l.Daemon.Spec.Type, l.Daemon.Spec.ID))
		// What is on the devices has changed, and nothing but udevd would tell.
		defer p.Changed()
		defer release()
	}
	return prepare()
}
