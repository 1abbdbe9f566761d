package cli

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/words"
)

// TestRunTool_signals: a command is told of signals and ends by them, so that the key is removed; the exit code is a shell's.
func TestRunTool_signals(t *testing.T) {
	// As ceph shell does: under nohup, which ignores SIGHUP, a command would ignore it as well.
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	t.Cleanup(func() { signal.Stop(hangups) })
	tests := []struct {
		name   string
		script string
		signal os.Signal
		code   int
	}{
		{"the terminal is gone", "exec sleep 60", syscall.SIGHUP, 128 + int(syscall.SIGHUP)},
		{"an interactive shell ignores SIGTERM", "trap '' TERM; exec sleep 60", syscall.SIGTERM, 128 + int(syscall.SIGHUP)},
		{"the command's own code", "exit 7", nil, 7},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			g := &globals{streams: streams{in: nil, err: io.Discard}}
			signals := make(chan os.Signal, 1)
			// The first word of the command says that it has its traps.
			g.out = writerFunc(func(b []byte) (int, error) {
				if tt.signal != nil {
					signals <- tt.signal
				}
				return len(b), nil
			})
			script := tt.script
			if before, last, found := strings.Cut(script, "exec "); found {
				script = before + "echo; exec " + last
			}
			err := g.runTool(t.Context(), t.TempDir(), []string{"/bin/sh", "-c", script}, signals)
			var coded *exitError
			if !errors.As(err, &coded) || coded.code != tt.code {
				t.Errorf("%v, want exit code %d", err, tt.code)
			}
		})
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

// TestCephClientFiles writes what a client needs, for its owner alone, and replaces nothing.
func TestCephClientFiles(t *testing.T) {
	t.Parallel()
	p := newHome(t, "client-files")
	const manifest = "apiVersion: holdfast.io/v1alpha1\nkind: Client\nmetadata: {name: app}\nspec: {cluster: c, caps: {mon: allow r}}\n"
	dir := filepath.Join(t.TempDir(), "app")
	p.must(t, exitRefused, "", []string{"ceph", "client-files", "app", dir}, "client/app does not exist")
	p.must(t, exitOK, manifest, []string{"apply", "-f", "-"})
	p.must(t, exitRefused, "", []string{"ceph", "client-files", "app", dir}, "has no key yet")
	c := &api.Client{}
	if err := p.Get(t.Context(), types.NamespacedName{Namespace: "client-files", Name: "app"}, c); err != nil {
		t.Fatal(err)
	}
	c.Status = api.ClientStatus{Entity: "client.app", Secret: "c-key-client.app", FSID: "f", MonHost: "10.0.0.1"}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "client-files", Name: c.Status.Secret}, Data: map[string][]byte{"keyring": []byte("[client.app]\n")},
	}
	if err := errors.Join(p.Status().Update(t.Context(), c), p.Create(t.Context(), secret)); err != nil {
		t.Fatal(err)
	}
	p.must(t, exitOK, "", []string{"ceph", "client-files", "app", dir}, "ceph.client.app.keyring written")
	for name, want := range map[string]string{"ceph.conf": "[global]\nfsid = f\nmon_host = 10.0.0.1\n", "ceph.client.app.keyring": "[client.app]\n"} {
		path := filepath.Join(dir, name)
		text, err := os.ReadFile(path)
		info, err2 := os.Stat(path)
		if err := errors.Join(err, err2); err != nil || string(text) != want || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %q, %v", name, text, err)
		}
	}
	p.must(t, exitRefused, "", []string{"ceph", "client-files", "app", dir}, "already exists")
}

// TestRunTool_data: what a program of the storage system writes comes out as it is, each byte of it.
func TestRunTool_data(t *testing.T) {
	var out bytes.Buffer
	g := &globals{streams: streams{out: words.NewVisibleWriter(&out), err: io.Discard}}
	if err := g.runTool(t.Context(), t.TempDir(), []string{"/bin/sh", "-c", `printf '\033\000\377\302\205'`}, nil); err != nil {
		t.Fatal(err)
	}
	if out.String() != "\x1b\x00\xff\u0085" {
		t.Errorf("%q", out.String())
	}
}
