package logs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/holdfast-storage/holdfast/agent/runtime/logfile"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/daemonlog"
)

var now = time.Date(2026, 11, 27, 3, 10, 0, 0, time.UTC)

const text = `2026-11-27T03:00:00.000+0000 7f 0 old
 its second line
2026-11-27T03:05:00.000+0000 7f 0 young
 its second line
27/11/2026 03:06:00 : epoch 1 : ganesha
[2026-11-27 03:07:00.123456 +0000] I [glusterd]
`

// write makes the log of a process below a data directory.
func write(t *testing.T, dir, process, text string) string {
	t.Helper()
	path := pathOf(dir, process)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestPrintFile(t *testing.T) {
	path := write(t, t.TempDir(), "default.ceph-osd-3", text)
	lines := strings.SplitAfter(text, "\n")
	for name, c := range map[string]struct {
		o    options
		want string
	}{
		"all":             {options{tail: -1}, text},
		"the end":         {options{tail: 2}, strings.Join(lines[4:6], "")},
		"none":            {options{tail: 0}, ""},
		"since":           {options{tail: -1, since: 6 * time.Minute}, strings.Join(lines[2:6], "")},
		"the end of that": {options{tail: 1, since: 3 * time.Minute}, lines[5]},
		"more than all":   {options{tail: 99}, text},
	} {
		var out bytes.Buffer
		if err := printFile(t.Context(), &out, path, c.o, now); err != nil || out.String() != c.want {
			t.Errorf("%s: %v\n%s", name, err, out.String())
		}
	}
}

// TestPrintFile_rotated: what --since asks for may lie in an older file.
func TestPrintFile_rotated(t *testing.T) {
	path := write(t, t.TempDir(), "default.ceph-osd-3", "2026-11-27T03:08:00.000+0000 three\n")
	for i, line := range []string{"2026-11-27T03:06:00.000+0000 two\n", "2026-11-27T03:05:00.000+0000 one\n"} {
		if err := os.WriteFile(fmt.Sprintf("%s.%d", path, i+1), []byte(line), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var out bytes.Buffer
	if err := printFile(t.Context(), &out, path, options{tail: -1, since: time.Hour}, now); err != nil {
		t.Fatal(err)
	}
	if strings.Count(out.String(), "\n") != 3 || !strings.HasPrefix(out.String(), "2026-11-27T03:05") {
		t.Error(out.String())
	}
}

// TestAppended: not a line is lost or printed twice while the agent rotates the log.
func TestAppended(t *testing.T) {
	path := write(t, t.TempDir(), "default.ceph-osd-3", "")
	var out, want bytes.Buffer
	at, err := daemonlog.Start(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3000 {
		f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(f, "line %d of the log of a daemon\n", i)
		fmt.Fprintf(&want, "line %d of the log of a daemon\n", i)
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		if i%7 == 0 {
			if err := logfile.Rotate(path, logfile.Limits{Size: 9000, Keep: 2}); err != nil {
				t.Fatal(err)
			}
		}
		if i%5 == 0 || i == 2999 {
			if at, err = appended(&out, path, at); err != nil {
				t.Fatal(err)
			}
		}
	}
	if out.String() != want.String() {
		t.Errorf("%d bytes were printed, and %d written", out.Len(), want.Len())
	}
}

// TestFollow ends when it is interrupted, and is no error then.
func TestFollow(t *testing.T) {
	path := write(t, t.TempDir(), "default.ceph-osd-3", text)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out bytes.Buffer
	if err := printFile(ctx, &out, path, options{tail: 0, follow: true}, now); err != nil || out.Len() > 0 {
		t.Errorf("%v: %s", err, out.String())
	}
}

// refused is an answer of the API, as the command line makes it.
type refused struct{ error }

func (refused) ExitCode() int { return 3 }

func TestPrint(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "default.ceph-osd-3", text)
	d := &api.Daemon{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "ceph-osd-3"},
		Spec:       api.DaemonSpec{Host: "h1"},
	}
	down := errors.New("connection refused")
	for name, c := range map[string]struct {
		arg   string
		d     *api.Daemon
		err   error
		o     options
		out   string
		wants string
	}{
		"here":                      {"daemon/osd.3", d, nil, options{tail: -1}, "glusterd", ""},
		"the API is away":           {"osd.3", nil, down, options{tail: -1}, "glusterd", ""},
		"by the name of the Daemon": {"ceph-osd-3", nil, down, options{tail: -1}, "glusterd", ""},
		"the API is away, elsewhere": {
			"osd.4", nil, down,
			options{tail: -1},
			"",
			"connection refused; and this host has no log",
		},
		"no such daemon": {
			"osd.3", nil,
			refused{errors.New("daemon osd.9 does not exist")},
			options{tail: -1},
			"",
			"does not exist",
		},
		"fewer than no lines": {"osd.3", d, nil, options{tail: -2}, "", "--tail must be"},
		"of the future":       {"osd.3", d, nil, options{tail: -1, since: -time.Second}, "", "--since"},
	} {
		var out, problems bytes.Buffer
		h := Home{
			Connect: func() (client.Client, error) { return nil, c.err },
			Find: func(_ context.Context, _ client.Client, name string) (*api.Daemon, error) {
				if strings.Contains(name, "/") {
					t.Errorf("asked for %s", name)
				}
				return c.d, c.err
			},
			Namespace: func() string { return "default" }, DataDir: func() string { return dir },
			Out: &out, Err: &problems,
		}
		if errors.As(c.err, new(refused)) {
			h.Connect = func() (client.Client, error) { return nil, nil }
		}
		err := h.print(t.Context(), c.arg, c.o)
		if (err == nil) != (c.wants == "") || err != nil && !strings.Contains(err.Error(), c.wants) ||
			!strings.Contains(out.String(), c.out) {
			t.Errorf("%s: %v\n%s", name, err, out.String())
		}
	}
}
