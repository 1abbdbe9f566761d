package deviceaction

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/holdfast-storage/holdfast/action"
	"github.com/holdfast-storage/holdfast/action/hostaction"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/words"
)

// adapterTimeout is how long one adapter may take. A write returns when the adapter has asked all
// its targets.
const adapterTimeout = time.Minute

// everything has an adapter look at all channels, targets and units (Linux,
// Documentation/ABI/testing/sysfs-class-scsi_host).
const everything = "- - -"

type rescan struct{ Host }

// Kind implements action.Handler.
func (*rescan) Kind() action.Kind { return rescanKind }

// Check implements action.Handler.
func (*rescan) Check(_ context.Context, a *api.Action) error { return hostaction.Check(a) }

// Undo implements action.Handler.
func (*rescan) Undo(context.Context, *api.Action, string) (action.Progress, error) { return undone() }

// Step implements action.Handler. To ask the adapters again does no harm.
func (r *rescan) Step(ctx context.Context, _ *api.Action, _ string) (action.Progress, error) {
	asked := r.askAdapters(ctx)
	devices, err := r.Scan(ctx)
	if err != nil {
		return action.Progress{}, fmt.Errorf("%s; while looking at the devices: %w", asked, err)
	}
	if err := r.Report(ctx); err != nil {
		return action.Progress{}, fmt.Errorf("%s: %w", asked, err)
	}
	whole := 0
	for i := range devices {
		if devices[i].Parent == "" {
			whole++
		}
	}
	text := fmt.Sprintf("%s; host %s has %s", asked, r.Name, words.Plural(whole, "device"))
	return action.Progress{Done: true, Message: text}, nil
}

// askAdapters asks all SCSI adapters, side by side, and says what came of it.
func (r *rescan) askAdapters(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, adapterTimeout)
	defer cancel()
	// A pattern without special characters but this one is never malformed.
	files, _ := filepath.Glob(filepath.Join(r.Root, "/sys/class/scsi_host/*/scan"))
	answers := make([]chan error, len(files))
	for i, file := range files {
		answers[i] = make(chan error, 1)
		go func() { answers[i] <- ask(file) }() // one that hangs in the kernel is left behind
	}
	var failed []string
	for i, file := range files {
		var err error
		select {
		case err = <-answers[i]:
		case <-ctx.Done():
			err = errors.New("it does not answer")
		}
		if err != nil {
			failed = append(failed, fmt.Sprintf("%s: %v", filepath.Base(filepath.Dir(file)), err))
		}
	}
	text := fmt.Sprintf("asked %s for new devices", words.Plural(len(files), "SCSI adapter"))
	if len(failed) > 0 {
		text += fmt.Sprintf(", of which %d failed (%s)", len(failed), strings.Join(failed, "; "))
	}
	return text
}

func ask(file string) error {
	f, err := os.OpenFile(file, os.O_WRONLY, 0)
	if err == nil {
		_, err = f.WriteString(everything)
		err = errors.Join(err, f.Close())
	}
	if cause := (*os.PathError)(nil); errors.As(err, &cause) {
		return cause.Err // the text names the adapter
	}
	return err
}
