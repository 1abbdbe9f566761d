package inventory

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"github.com/holdfast-storage/holdfast/agent/service/luks"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/blank"
	"github.com/holdfast-storage/holdfast/internal/bluestore"
)

// parallel is how many devices are looked at at a time. Each costs one short process.
const parallel = 8

// findings is what a look at one device found.
type findings struct {
	// values are those of blkid: TYPE, UUID, LABEL, USAGE, PTTYPE, PART_ENTRY_UUID …
	values map[string]string
	// ambivalent says that blkid found signatures that contradict each other.
	ambivalent bool
	ceph       *api.DeviceCeph
	// leftovers says of what else was found, in sentences.
	leftovers []string
	// unknown says of what was found that is nothing whole: data without a signature, copies of a
	// label.
	unknown []string
	// volumeGroup is the name of the LVM volume group.
	volumeGroup string
	// problem says, in a sentence, why the device could not be looked at.
	problem string
}

// probe looks at the blocks, as far as what is known of them may have changed. One device that hangs costs its timeout
// once, and nothing afterwards.
func (s *Scanner) probe(ctx context.Context, blocks []*block) (map[string]findings, error) {
	look := s.look
	if look == nil {
		if _, err := exec.LookPath("blkid"); err != nil {
			return nil, fmt.Errorf("while looking for blkid (Debian package util-linux): %w", err)
		}
		look = lookAt
	}
	results := make([]known, len(blocks))
	var group errgroup.Group
	group.SetLimit(parallel)
	for i, b := range blocks {
		if k, ok := s.known[b.name]; ok && k.mark == b.mark {
			results[i] = k
			continue
		}
		group.Go(func() error {
			results[i] = known{found: s.lookInTime(ctx, b, look)}
			if results[i].found.problem == "" {
				results[i].mark = b.mark
			}
			return nil
		})
	}
	_ = group.Wait() // no look returns an error
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("while probing the devices: %w", err)
	}
	found := make(map[string]findings, len(blocks))
	s.known = make(map[string]known, len(blocks))
	for i, b := range blocks {
		found[b.name] = results[i].found
		if results[i].mark != "" {
			s.known[b.name] = results[i]
		}
	}
	return found, nil
}

// lookInTime looks at a device and gives up after the timeout. What hangs in the kernel cannot be ended, not even by
// SIGKILL; it is left behind, and the device is not looked at again before it has come back.
func (s *Scanner) lookInTime(ctx context.Context, b *block, look func(context.Context, string) findings) findings {
	timeout := s.Timeout
	if timeout == 0 {
		timeout = DefaultTimeout
	}
	hangs := findings{problem: "does not answer"}
	if _, busy := s.stuck.LoadOrStore(b.name, struct{}{}); busy {
		return hangs
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	done := make(chan findings, 1)
	go func() {
		defer cancel()
		found := look(ctx, b.path())
		s.stuck.Delete(b.name) // before the answer: whoever has it may ask again at once
		done <- found
	}()
	select {
	case f := <-done:
		return f
	case <-ctx.Done():
	}
	// The look ends at the same moment where it can be ended at all; only then is its answer a better one.
	select {
	case f := <-done:
		return f
	case <-time.After(100 * time.Millisecond):
		return hangs
	}
}

// Content says, in sentences as in Device.Reasons, what there is on a device or why that cannot be
// known; nothing where it is empty. What has no signature is looked for in a part of it.
func Content(ctx context.Context, d *api.Device, part func(size int64) blank.Span) []string {
	found := lookIn(ctx, d.Path, part)
	return append(contentReasons(found), unknownReasons(d, found)...)
}

// Unknown says whether there is something on a device, but nothing that has a signature.
func Unknown(ctx context.Context, d *api.Device) bool {
	found := lookAt(ctx, d.Path)
	return len(found.unknown) > 0 && len(contentReasons(found)) == 0
}

// unknownReasons says of what is on a device that is nothing whole, and how to free it. The
// signatures that wipefs knows are not there, and the first MiB are a small part of what is.
func unknownReasons(d *api.Device, f findings) []string {
	var out []string
	for _, what := range f.unknown {
		out = append(out, fmt.Sprintf("%s. If it is not needed, run 'holdfast device free %s --id %s' on this host, or 'blkdiscard %[2]s'",
			what, d.Path, d.ID))
	}
	return out
}

// lookAt reads what is on the device.
func lookAt(ctx context.Context, path string) findings {
	return lookIn(ctx, path, func(size int64) blank.Span { return blank.Span{To: size} })
}

func lookIn(ctx context.Context, path string, part func(size int64) blank.Span) findings {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return findings{problem: "cannot be opened: " + cause(err)}
	}
	defer f.Close()
	found := blkid(ctx, path)
	if found.problem != "" {
		return found
	}
	readLabels(path, &found)
	if found.values["TYPE"] == "crypto_LUKS" {
		readOwner(path, &found)
	}
	if found.values["TYPE"] == "LVM2_member" {
		found.volumeGroup = volumeGroup(f)
	}
	if err := readRest(ctx, f, &found, part); err != nil {
		found.problem = "cannot be read: " + err.Error()
	}
	return found
}

// readRest looks for what has no signature, as far as nothing has been found that has one.
func readRest(ctx context.Context, f *os.File, found *findings, part func(size int64) blank.Span) error {
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	found.unknown, err = labelCopies(f, size)
	if err != nil || len(found.unknown)+len(contentReasons(*found)) > 0 {
		return err
	}
	at, any, err := blank.LookIn(ctx, f, blank.Within(size, part(size)))
	if any {
		what := fmt.Sprintf("holds unknown data at byte %d, without a signature", at)
		found.unknown = append(found.unknown, what)
	}
	return err
}

// blkid runs libblkid's low-level probe, which reads the device itself and needs neither udev nor a cache.
func blkid(ctx context.Context, path string) findings {
	cmd := exec.CommandContext(ctx, "blkid", "-p", "-o", "export", path)
	cmd.Env = []string{"LC_ALL=C", "PATH=" + os.Getenv("PATH")}
	var out, complaint bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaint
	err := cmd.Run()
	status := 0
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		status = exit.ExitCode()
	} else if err != nil {
		return findings{problem: "cannot be probed: " + cause(err)}
	}
	return parseBlkid(out.String(), strings.TrimSpace(complaint.String()), status)
}

// parseBlkid reads the answer of blkid -p. Its exit status is 2 both when it found nothing and when it could not read the
// device; only in the second case it complains. It is 8 for signatures that contradict each other (blkid(8)).
func parseBlkid(out, complaint string, status int) findings {
	switch {
	case status == 8:
		return findings{ambivalent: true}
	case status == 2 && complaint == "":
		return findings{}
	case status != 0:
		return findings{problem: "cannot be probed: " + first(complaint, fmt.Sprintf("blkid ended with exit status %d", status))}
	}
	values := map[string]string{}
	for line := range strings.Lines(out) {
		if k, v, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "="); ok {
			values[k] = unescape(v)
		}
	}
	return findings{values: values}
}

// unescape undoes blkid's backslashes before blanks and quotes.
func unescape(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) {
			i++
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// readLabels reads the BlueStore label at the start of the device.
func readLabels(path string, found *findings) {
	label, err := bluestore.ReadLabel(path)
	switch {
	case errors.Is(err, bluestore.ErrNoLabel):
	case err != nil:
		found.leftovers = append(found.leftovers, "has a BlueStore label that cannot be read: "+cause(err))
	default:
		found.ceph = &api.DeviceCeph{FSID: label.ClusterFSID(), OSDUUID: label.OSDUUID, Part: label.Part()}
		if id, ok := label.OSDID(); ok {
			found.ceph.OSDID = &id
		}
	}
}

// readOwner reads for which OSD a device is encrypted.
func readOwner(path string, found *findings) {
	o, err := luks.OwnerOf(path)
	if err != nil || o.OSD == "" {
		return
	}
	found.ceph = &api.DeviceCeph{FSID: o.Cluster, OSDUUID: o.OSD}
	if o.Part != luks.PartData {
		found.ceph.Part = o.Part
	}
}

// InUse is the reason of a device that somebody has open for himself alone, and of which nothing
// else is known. That may be over in a moment.
const InUse = "is in use: the kernel refuses to open it exclusively (it may be mounted in another mount namespace)"

// openable returns why the device cannot be opened exclusively, or "". The kernel refuses it while the device is mounted
// in any namespace, is held by another device, or is open in this way by another program (open(2), O_EXCL).
func openable(path string) string {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_EXCL|unix.O_NONBLOCK, 0)
	switch {
	case errors.Is(err, unix.EBUSY):
		return InUse
	case err != nil:
		return "cannot be opened: " + cause(err)
	}
	f.Close()
	return ""
}

// cause is the innermost error, for sentences about a device that is named elsewhere.
func cause(err error) string {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err.Error()
		}
		err = inner
	}
}
