package logs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/holdfast-storage/holdfast/action"
	"github.com/holdfast-storage/holdfast/action/logaction"
	"github.com/holdfast-storage/holdfast/agent/runtime/logfile"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/redact"
)

// secrets is an API that has one Secret.
type secrets struct {
	client.Reader
	down error
}

func (s secrets) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	if s.down != nil {
		return s.down
	}
	if key.Name == "gone" {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "secrets"}, key.Name)
	}
	into.(*corev1.Secret).Data = map[string][]byte{"keyring": []byte("[osd.3]\n\tkey = plainsecretvalue\n")}
	return nil
}

func source(secret string) api.DaemonFile {
	return api.DaemonFile{Sources: []api.FileSource{{Secret: &api.SecretKey{Name: secret, Key: "keyring"}}}}
}

// host has the daemon ceph-osd-3, and its log.
func host(t *testing.T) (*handler, *api.Daemon, string) {
	t.Helper()
	d := &api.Daemon{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "ceph-osd-3"},
		Spec:       api.DaemonSpec{Host: "h1", Cluster: "ceph", Files: []api.DaemonFile{source("key"), source("gone")}},
	}
	path := filepath.Join(t.TempDir(), "daemon.log")
	h := New(Host{
		Name: "h1", Client: secrets{}, File: func(types.NamespacedName) string { return path },
		Daemon: func(name types.NamespacedName) (*api.Daemon, bool) {
			if name.Name == d.Name {
				return d, true
			}
			return nil, true
		},
	})
	return h.(*handler), d, path
}

func appendTo(t *testing.T, path, text string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(text); err != nil {
		t.Fatal(err)
	}
}

func do(t *testing.T, h *handler, d *api.Daemon, ask logaction.Ask) action.Progress {
	t.Helper()
	a := logaction.For(d, ask)
	a.Status.Started = &metav1.Time{Time: time.Now().Add(-5 * time.Second)}
	p, err := h.Step(t.Context(), a, "read")
	if err := errors.Join(err, h.Check(t.Context(), a)); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(p.Message, "line") && p.Done || len(p.Output) > action.MaxOutput {
		t.Errorf("%d bytes, message %s", len(p.Output), p.Message)
	}
	return p
}

func lineOf(at time.Time, text string) string {
	return at.UTC().Format("2006-01-02T15:04:05.000-0700") + " 7f 0 " + text + "\n"
}

func TestStep(t *testing.T) {
	h, d, path := host(t)
	now := time.Now()
	appendTo(t, path, lineOf(now.Add(-time.Hour), "old line")+lineOf(now, "young line")+lineOf(now, "last line"))
	for name, c := range map[string]struct {
		ask   logaction.Ask
		lines int
	}{
		"all":         {logaction.Ask{Tail: -1}, 3},
		"the end":     {logaction.Ask{Tail: 1}, 1},
		"none":        {logaction.Ask{Tail: 0}, 0},
		"the young":   {logaction.Ask{Tail: -1, Since: time.Minute}, 2},
		"one of them": {logaction.Ask{Tail: 1, Since: time.Minute}, 1},
	} {
		p := do(t, h, d, c.ask)
		if !p.Done || strings.Count(p.Output, "\n") != c.lines || p.Count != p.Total {
			t.Errorf("%s: %+v", name, p)
		}
	}
}

// TestStep_follow: an action continues where another ended, waits for a line, and at last ends
// without one.
func TestStep_follow(t *testing.T) {
	h, d, path := host(t)
	appendTo(t, path, "line one\n")
	next := do(t, h, d, logaction.Ask{Tail: -1}).Next
	if p := do(t, h, d, logaction.Ask{From: next, Wait: time.Hour}); p.Done || p.Recheck != recheck {
		t.Errorf("nothing is new: %+v", p)
	}
	if p := do(t, h, d, logaction.Ask{From: next, Wait: time.Second}); !p.Done || p.Output != "" || p.Next != next {
		t.Errorf("the wait is over: %+v", p)
	}
	filler := strings.Repeat("filler\n", 2000)
	appendTo(t, path, filler)
	if err := logfile.Rotate(path, logfile.Limits{Size: 4096, Keep: 1}); err != nil {
		t.Fatal(err)
	}
	appendTo(t, path, "line two\nhalf a")
	if p := do(t, h, d, logaction.Ask{From: next, Wait: time.Hour}); !p.Done || p.Output != filler+"line two\n" {
		t.Errorf("after a rotation: %d bytes", len(p.Output))
	}
}

// TestStep_bounded: of a long log the end is read, and it is known that there is more; what comes
// then is read in parts.
func TestStep_bounded(t *testing.T) {
	h, d, path := host(t)
	appendTo(t, path, "first line\n")
	first := do(t, h, d, logaction.Ask{Tail: -1}).Next
	var all strings.Builder
	for i := range 9000 {
		fmt.Fprintf(&all, "a line with \x1b[31mcolour %d\n", i)
	}
	appendTo(t, path, all.String())
	p := do(t, h, d, logaction.Ask{Tail: -1})
	if p.Count > logaction.Most || p.Total <= p.Count || !strings.HasSuffix(p.Output, "colour 8999\n") ||
		!strings.Contains(p.Output, `\x1b[31m`) || strings.Contains(p.Output, "\x1b") {
		t.Errorf("%d of %d bytes: %.100s", p.Count, p.Total, p.Output)
	}
	if p := do(t, h, d, logaction.Ask{Tail: 10}); p.Total != p.Count {
		t.Errorf("%d of %d bytes, and ten lines are there", p.Count, p.Total)
	}
	if p := do(t, h, d, logaction.Ask{Tail: 5000}); p.Total == p.Count {
		t.Error("5000 lines do not fit")
	}
	read := 0
	for from := first; ; {
		p := do(t, h, d, logaction.Ask{From: from})
		if read += strings.Count(p.Output, "\n"); p.Output == "" {
			break
		}
		from = p.Next
	}
	if read != 9000 {
		t.Errorf("%d lines of 9000", read)
	}
}

// TestStep_redacts: neither what looks like a secret comes out, nor what is one of the daemon's.
func TestStep_redacts(t *testing.T) {
	h, d, path := host(t)
	key := "AQD4" + strings.Repeat("x7Rk", 8) + "Zg=="
	appendTo(t, path, "auth: key "+key+" for osd.3\nit said plainsecretvalue\npassword=hunter22\n")
	p := do(t, h, d, logaction.Ask{Tail: -1})
	if strings.Contains(p.Output, key) || strings.Contains(p.Output, "plainsecretvalue") ||
		strings.Contains(p.Output, "hunter22") || strings.Count(p.Output, redact.Mark) != 3 {
		t.Error(p.Output)
	}
	h.Client = secrets{down: errors.New("no server")}
	a := logaction.For(d, logaction.Ask{Tail: -1})
	if p, err := h.Step(t.Context(), a, "read"); err == nil || errors.Is(err, action.ErrRefused) || p.Output != "" {
		t.Errorf("the secrets are not known: %v, %+v", err, p)
	}
}

func TestStep_refused(t *testing.T) {
	h, d, path := host(t)
	other := d.DeepCopy()
	other.Name = "ceph-osd-4"
	pods := *h
	pods.Pods = true
	for name, c := range map[string]struct {
		h   *handler
		a   *api.Action
		has string
	}{
		"no log":    {h, logaction.For(d, logaction.Ask{Tail: -1}), "no log on host h1 yet"},
		"no daemon": {h, logaction.For(other, logaction.Ask{Tail: -1}), "does not exist"},
		"pods":      {&pods, logaction.For(d, logaction.Ask{Tail: -1}), "kubectl -n default logs ceph-osd-3"},
		"no place":  {h, logaction.For(d, logaction.Ask{From: "../x"}), "is no place"},
		"no target": {h, &api.Action{}, "spec.target"},
	} {
		_, err := c.h.Step(t.Context(), c.a, "read")
		if !errors.Is(err, action.ErrRefused) || !strings.Contains(err.Error(), c.has) {
			t.Errorf("%s: %v", name, err)
		}
	}
	appendTo(t, path, "line\n")
	unknown := *h
	unknown.Daemon = func(types.NamespacedName) (*api.Daemon, bool) { return nil, false }
	err := unknown.Check(t.Context(), logaction.For(d, logaction.Ask{}))
	if err == nil || errors.Is(err, action.ErrRefused) {
		t.Errorf("the daemons are not known: %v", err)
	}
}
