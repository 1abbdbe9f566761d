package control_test

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/holdfast-storage/holdfast/control"
	"github.com/holdfast-storage/holdfast/control/damaged"
)

// overwrite writes over a part of a file of a server's member, which does not run.
func (c *crew) overwrite(i int, file string, at int64, with []byte) {
	c.t.Helper()
	f, err := os.OpenFile(filepath.Join(c.configs[i].DataDir, "etcd", "member", file), os.O_WRONLY, 0)
	if err != nil {
		c.t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt(with, at); err != nil {
		c.t.Fatal(err)
	}
}

// note is what a server has written down of damage.
func (c *crew) note(i int) *damaged.Note {
	c.t.Helper()
	n, err := damaged.Read(c.configs[i].DataDir)
	if err != nil {
		c.t.Fatal(err)
	}
	return n
}

// saidLog is what a server logs.
type saidLog struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *saidLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// await waits until the server has logged something.
func (l *saidLog) await(t *testing.T, want string) {
	t.Helper()
	eventually(t, func() error {
		l.mu.Lock()
		defer l.mu.Unlock()
		if !strings.Contains(l.text.String(), want) {
			return fmt.Errorf("it has not logged %q, but %s", want, l.text.String())
		}
		return nil
	})
}

// listen has a server log to what is returned, from its next start on.
func (c *crew) listen(i int) *saidLog {
	said := &saidLog{}
	c.configs[i].Log = slog.New(slog.NewTextHandler(said, nil))
	return said
}

// headPages are both pages at the head of a database.
var headPages = make([]byte, 8192)

// TestDamaged: a server whose database is damaged gets a new one from the others, while they have
// a quorum. Before that it touches nothing.
func TestDamaged(t *testing.T) {
	t.Parallel()
	c := newCrew(t, "d", 3)
	admin := newClient(t, c.servers[0].Config())
	ns := newNamespace(t, admin)
	putSecret(t, admin, ns, "kept")
	c.stops[2]()
	c.stops[1]()
	c.overwrite(2, "snap/db", 0, headPages)
	before := contents(t, filepath.Join(c.configs[2].DataDir, "etcd"))

	said := c.listen(2)
	c.start(2) // It waits for the others, and its agent can work.
	said.await(t, "nothing was changed")
	if after := contents(t, filepath.Join(c.configs[2].DataDir, "etcd")); len(after) == 0 || len(after) != len(before) {
		t.Errorf("without a quorum of the others its files are %v, and were %v", after, before)
	}
	if n := c.note(2); n == nil || n.File != "member/snap/db" || n.Kept != "" {
		t.Errorf("it has noted %+v", n)
	}
	if step := damaged.NextStep(c.configs[2].DataDir, false); !strings.Contains(step, "holdfast restore") {
		t.Errorf("the next step is %q", step)
	}

	c.start(1)
	seated(t, 3, c.servers...)
	wantSecret(t, newClient(t, c.servers[2].Config()), ns, "kept", true)
	n := c.note(2)
	if n == nil || n.Kept == "" {
		t.Fatalf("it has noted %+v", n)
	}
	if kept := contents(t, filepath.Join(c.configs[2].DataDir, n.Kept)); len(kept) != len(before) {
		t.Errorf("of %v it has kept %v", before, kept)
	}
	eventually(t, func() error {
		for _, e := range events(t, c.servers[0]) {
			says := strings.Contains(e.Message, "member/snap/db") && strings.Contains(e.Message, n.Kept)
			if e.Code == "QUORUM_MEMBER_REMOVED" && says {
				return nil
			}
		}
		return fmt.Errorf("no event says that the files were damaged: %v", seats(t, c.servers[0], "d2"))
	})

	// Again within a day: the disk fails, and a person has to look.
	c.stops[2]()
	c.overwrite(2, "snap/db", 0, headPages)
	c.start(2)
	said.await(t, "are damaged again")
	if n := c.note(2); n == nil || n.Kept != "" || c.servers[2].Voters() != 0 {
		t.Errorf("it has noted %+v", n)
	}
	if _, err := os.Stat(filepath.Join(c.configs[2].DataDir, "etcd", "member")); err != nil {
		t.Error(err)
	}
}

// TestDamaged_silently: a byte of a value that changed on the disk has no mark of its own; the others say so.
func TestDamaged_silently(t *testing.T) {
	t.Parallel()
	c := newCrew(t, "ds", 3)
	newNamespace(t, newClient(t, c.servers[0].Config()))
	c.stops[1]()
	path := filepath.Join(c.configs[1].DataDir, "etcd", "member", "snap", "db")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	at := strings.LastIndex(string(text), "holdfast-system")
	for from := text; at >= 0; at = strings.LastIndex(string(from), "holdfast-system") {
		c.overwrite(1, "snap/db", int64(at), []byte("holdfost")) // each copy of it
		from = from[:at]
	}
	c.start(1)
	seated(t, 3, c.servers...)
	if n := c.note(1); n == nil || n.Kept == "" || !strings.Contains(n.Problem, "is not that of the other 2 members") {
		t.Errorf("the server runs on changed data, and has noted %+v", n)
	}
}

// TestDamaged_agent: the host of a server is there for its agent while the server waits for the others.
func TestDamaged_agent(t *testing.T) {
	t.Parallel()
	c := newCrew(t, "da", 3)
	for _, stop := range c.stops {
		stop()
	}
	hosts := make(chan string, 1)
	config := c.configs[1]
	config.Host = func(name string, _ *rest.Config) { hosts <- name }
	ctx, cancel := timeoutOf(5 * time.Second)
	defer cancel()
	if _, err := control.Start(ctx, config); err == nil {
		t.Error("it started without a quorum")
	}
	if name := <-hosts; name != config.Name {
		t.Errorf("the agent of %q is begun", name)
	}
}

// TestDamaged_identity: whatever file of a server is damaged, it is made anew, or the start ends and names what to do.
func TestDamaged_identity(t *testing.T) {
	t.Parallel()
	c := newConfig(t, filepath.Join(t.TempDir(), "data"), "di")
	c.Init = true
	_, stop := start(t, c)
	stop()
	c.Init = false
	var paths []string
	for _, pattern := range []string{"*", "pki/*", "host/*"} {
		found, err := filepath.Glob(filepath.Join(c.DataDir, pattern))
		if err != nil {
			t.Fatal(err)
		}
		paths = append(paths, found...)
	}
	for _, path := range paths {
		if info, err := os.Stat(path); err != nil || info.IsDir() || filepath.Base(path) == "lock" {
			continue
		}
		name := strings.TrimPrefix(path, c.DataDir+"/")
		t.Run(strings.ReplaceAll(name, "/", " "), func(t *testing.T) { damageFile(t, c, path) })
	}
}

// damageFile empties a file, and starts the server; afterwards the file is what it was.
func damageFile(t *testing.T, c control.Config, path string) {
	t.Helper()
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := control.Start(timeout(t), c)
	if err == nil {
		s.Stop()
		return
	}
	next := []string{"--join TOKEN", "of another server", "write 1 into it"}
	if !slices.ContainsFunc(next, func(step string) bool { return strings.Contains(err.Error(), step) }) {
		t.Errorf("there is no next step in: %v", err)
	}
	if err := os.WriteFile(path, whole, 0o600); err != nil {
		t.Fatal(err)
	}
}
