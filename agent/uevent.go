package agent

import (
	"context"
	"errors"

	"golang.org/x/sys/unix"

	"github.com/holdfast-storage/holdfast/agent/uevent"
)

// watchDevices has the host looked at whenever the kernel tells of a change of a block device, until ctx ends. Without these
// messages, changes are seen at the next regular look.
func (a *agent) watchDevices(ctx context.Context) {
	f, err := uevent.Open()
	if err != nil {
		a.log.Warn("changes of devices are noticed only at the next regular scan", "error", err)
		return
	}
	release := context.AfterFunc(ctx, func() { f.Close() })
	defer release()
	buf := make([]byte, 8192)
	for {
		n, err := f.Read(buf)
		switch {
		case ctx.Err() != nil:
			return
		case errors.Is(err, unix.ENOBUFS):
			a.askReport() // some were lost
		case err != nil:
			a.log.Warn("changes of devices are noticed only at the next regular scan", "error", err)
			f.Close()
			return
		case uevent.AboutBlock(buf[:n]):
			a.askReport()
		}
	}
}
