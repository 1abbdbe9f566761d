package control_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/holdfast-storage/holdfast/control"
	"github.com/holdfast-storage/holdfast/control/backup"
)

// putSecret makes a Secret: it can be read only with the right encryption key.
// putSecret returns the revision that the Secret was written at.
func putSecret(t *testing.T, c client.Client, namespace, name string) int64 {
	t.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: map[string][]byte{"key": []byte(name)}}
	if err := c.Create(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	revision, err := strconv.ParseInt(secret.ResourceVersion, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return revision
}

func wantSecret(t *testing.T, c client.Client, namespace, name string, there bool) {
	t.Helper()
	secret := &corev1.Secret{}
	is := false
	eventually(t, func() error { // a server that has just taken its seat may be slow to answer
		err := c.Get(t.Context(), key(namespace, name), secret)
		is = err == nil
		return client.IgnoreNotFound(err)
	})
	if is != there || there && string(secret.Data["key"]) != name {
		t.Errorf("the Secret %s: is there: %v, wanted there: %v", name, is, there)
	}
}

func fetch(t *testing.T, s *control.Server) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "b")
	if _, err := control.FetchBackup(timeout(t), s.Config(), path); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the backup has the mode %v, %v", info.Mode(), err)
	}
	return path
}

func restoreInto(t *testing.T, c control.Config, file string) (*control.Restored, error) {
	t.Helper()
	c.Init, c.JoinToken = false, ""
	return control.Restore(timeout(t), control.RestoreConfig{Config: c, File: file})
}

// TestRestore: what was there at the time of the backup is there again, what came later is not; no resource version is used
// twice; watchers are told to list again; hosts keep their identity.
func TestRestore(t *testing.T) {
	t.Parallel()
	config := newConfig(t, t.TempDir(), "r1")
	config.Init = true
	s, stop := start(t, config)
	c := newClient(t, s.Config())
	ns := newNamespace(t, c)
	agentDir := t.TempDir()
	if err := joinAgent(t, agentDir, "r9", newToken(t, s, "agent")); err != nil {
		t.Fatal(err)
	}
	putSecret(t, c, ns, "before")
	file := fetch(t, s)
	_, err := control.FetchBackup(timeout(t), s.Config(), file)
	wantError(t, err, "exists: choose another name")
	putSecret(t, c, ns, "after")
	later := &corev1.Secret{}
	if err := c.Get(t.Context(), key(ns, "after"), later); err != nil {
		t.Fatal(err)
	}
	_, err = restoreInto(t, config, file)
	wantError(t, err, "runs on the data directory")
	stop()

	done, err := restoreInto(t, config, file)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(done.Kept, "etcd", "member")); err != nil {
		t.Errorf("the old data was not kept: %v", err)
	}
	config.Init = false
	s, _ = start(t, config)
	c = newClient(t, s.Config())
	wantSecret(t, c, ns, "before", true)
	wantSecret(t, c, ns, "after", false)
	secrets := &corev1.SecretList{}
	if err := c.List(t.Context(), secrets, client.InNamespace(ns)); err != nil {
		t.Fatal(err)
	}
	if len(secrets.ResourceVersion) <= len(later.ResourceVersion) {
		t.Errorf("the resource version is %s after %s was seen", secrets.ResourceVersion, later.ResourceVersion)
	}
	wantExpired(t, s, ns, later.ResourceVersion)
	if err := joinAgent(t, agentDir, "", ""); err != nil {
		t.Errorf("an agent is not known any more: %v", err)
	}
}

// wantExpired: a watch from a revision that was seen before the restore is told that it is gone.
func wantExpired(t *testing.T, s *control.Server, namespace, revision string) {
	t.Helper()
	c, err := client.NewWithWatch(s.Config(), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	w, err := c.Watch(timeout(t), &corev1.SecretList{}, client.InNamespace(namespace),
		&client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: revision}})
	if err != nil {
		return // The watch itself was refused.
	}
	defer w.Stop()
	if e := <-w.ResultChan(); e.Type != watch.Error {
		t.Errorf("a watch from an old revision got %s of %v", e.Type, name(e))
	}
}

func name(e watch.Event) string {
	if o, err := meta.Accessor(e.Object); err == nil {
		return o.GetName()
	}
	return "nothing"
}

// TestRestore_elsewhere: all machines are lost; a new one becomes the server, with the keys that the backup holds.
func TestRestore_elsewhere(t *testing.T) {
	t.Parallel()
	s, _ := sharedServer(t)
	c := newClient(t, s.Config())
	ns := newNamespace(t, c)
	putSecret(t, c, ns, "kept")
	file := fetch(t, s)
	config := newConfig(t, t.TempDir(), "shared")
	away := config
	away.Address = "192.0.2.99" // it is for documents alone
	_, err := restoreInto(t, away, file)
	wantError(t, err, "this machine does not have the address 192.0.2.99: give one that it has with --address")
	done, err := restoreInto(t, config, file)
	if err != nil {
		t.Fatal(err)
	}
	if !done.Unknown {
		t.Error("nobody is told that no server of the backup had its address")
	}
	again, _ := start(t, config)
	wantSecret(t, newClient(t, again.Config()), ns, "kept", true)
}

// TestRestore_fromData: the last server of three, killed in the middle of its work, has everything that was written.
func TestRestore_fromData(t *testing.T) {
	t.Parallel()
	config := newConfig(t, t.TempDir(), "d1")
	config.Init = true
	s, stop := start(t, config)
	c := newClient(t, s.Config())
	ns := newNamespace(t, c)
	putSecret(t, c, ns, "last")
	// What lies on the disk now is what a kill would leave.
	killed := config
	killed.DataDir = t.TempDir()
	if err := os.CopyFS(killed.DataDir, os.DirFS(config.DataDir)); err != nil {
		t.Fatal(err)
	}
	stop()
	done, err := restoreInto(t, killed, "")
	if err != nil {
		t.Fatal(err)
	}
	if done.Revision < 1 || !done.Time.IsZero() || done.Unknown {
		t.Errorf("got %+v", done)
	}
	restoreByALateClock(t, killed)
	killed.Init = false
	s, _ = start(t, killed)
	wantSecret(t, newClient(t, s.Config()), ns, "last", true)

	// A machine that knows of none of this learns it from the backup.
	fresh := newConfig(t, t.TempDir(), "d1")
	if _, err := restoreInto(t, fresh, fetch(t, s)); err != nil {
		t.Fatal(err)
	}
	if got, was := generation(t, fresh, nil), generation(t, killed, nil); got <= was {
		t.Errorf("the generation on the new machine is %d after %d: servers that were lost would count for more", got, was)
	}
}

// restoreByALateClock: an earlier restore was done by a clock that was an hour ahead; what is restored last is right all the same.
func restoreByALateClock(t *testing.T, c control.Config) {
	t.Helper()
	ahead := time.Now().Add(time.Hour).Unix()
	generation(t, c, func(stored map[string]any) { stored["generation"] = ahead })
	if _, err := restoreInto(t, c, ""); err != nil {
		t.Fatal(err)
	}
	if got := generation(t, c, nil); got <= ahead {
		t.Errorf("the generation is %d after %d: servers of the earlier restore would count for more", got, ahead)
	}
}

// generation reads what life of the control plane a data directory is of. change, where given, is applied to server.json before.
func generation(t *testing.T, c control.Config, change func(stored map[string]any)) int64 {
	t.Helper()
	path, stored := filepath.Join(c.DataDir, "server.json"), map[string]any{}
	text, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(text, &stored)
	}
	if change != nil && err == nil {
		change(stored)
		if text, err = json.Marshal(stored); err == nil {
			err = os.WriteFile(path, text, 0o600)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	n, _ := stored["generation"].(float64)
	return int64(n)
}

func TestRestore_refusals(t *testing.T) {
	t.Parallel()
	s, shared := sharedServer(t)
	file := fetch(t, s)
	good, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	other := newConfig(t, t.TempDir(), "o1")
	other.Init = true
	_, stop := start(t, other)
	stop()
	agent := t.TempDir()
	if err := joinAgent(t, agent, "refusing", newToken(t, s, "agent")); err != nil {
		t.Fatal(err)
	}
	flipped := bytes.Clone(good)
	flipped[len(flipped)/2] ^= 1
	revision := bytes.Replace(good, []byte(`"revision": `), []byte(`"revision": 9`), 1)[:len(good)]
	newer := bytes.Replace(good, []byte(`"format": 1`), []byte(`"format": 9`), 1)
	for _, test := range []struct {
		name, dir string
		content   []byte
		want      string
	}{
		{"cut off", t.TempDir(), good[:len(good)/2], "is damaged: it is cut off"},
		{"cut off at the end", t.TempDir(), good[:len(good)-2048], "is damaged"},
		{"one bit", t.TempDir(), flipped, "is damaged"},
		{"header", t.TempDir(), revision, "is damaged"},
		{"empty", t.TempDir(), nil, "is not a backup of Holdfast"},
		{"something else", t.TempDir(), []byte(strings.Repeat("hello ", 500)), "is not a backup of Holdfast"},
		{"of another control plane", other.DataDir, good, "is of another control plane"},
		{"of a newer version", t.TempDir(), newer, "was made by holdfast dev (format 9, this one knows 1): install that version"},
		{"over an agent", agent, good, "holds the identity of an agent"},
		{"a server runs", shared.DataDir, good, "runs on the data directory"},
		{"nothing to take", t.TempDir(), nil, "holds no server: name the backup"},
	} {
		t.Run(test.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "b")
			if err := os.WriteFile(path, test.content, 0o600); err != nil {
				t.Fatal(err)
			}
			if test.name == "nothing to take" {
				path = ""
			}
			config := newConfig(t, test.dir, "")
			config.APIPort, config.EtcdPeerPort, config.EtcdClientPort = 0, 0, 0
			_, err := control.Restore(timeout(t), control.RestoreConfig{Config: control.Config{DataDir: test.dir, Log: config.Log}, File: path})
			wantError(t, err, test.want)
			if test.name != "a server runs" && !errors.Is(err, control.ErrRefused) {
				t.Errorf("it is not a refusal: %v", err)
			}
			if left, _ := filepath.Glob(filepath.Join(test.dir, "*restore*")); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
	other.Init = false
	start(t, other) // It is what it was.
}

// TestBackups_schedule: a server takes backups by itself and keeps some; they can be restored as they are.
func TestBackups_schedule(t *testing.T) {
	t.Parallel()
	config := newConfig(t, t.TempDir(), "k1")
	config.Init, config.BackupEvery, config.BackupKeep = true, 20*time.Millisecond, 2
	_, stop := start(t, config)
	dir := control.SnapshotDir(config.DataDir)
	seen := map[string]bool{}
	eventually(t, func() error {
		paths, err := backup.List(dir)
		for _, path := range paths {
			seen[path] = true
		}
		if err == nil && len(seen) < 4 {
			err = errors.New("too few backups")
		}
		return err
	})
	stop()
	paths, err := backup.List(dir)
	if err != nil || len(paths) > 2 {
		t.Errorf("%v are kept, %v; want 2", paths, err)
	}
	if at, err := control.LastBackup(config.DataDir); err != nil || time.Since(at).Abs() > time.Minute {
		t.Errorf("the last backup was taken at %v, %v", at, err)
	}
	config.Init = false
	if _, err := restoreInto(t, config, paths[len(paths)-1]); err != nil {
		t.Fatal(err)
	}
	start(t, config)
}

// TestBackups_asked: whoever asks for backups pushes out none of the schedule, and leaves nothing behind.
func TestBackups_asked(t *testing.T) {
	t.Parallel()
	config := newConfig(t, t.TempDir(), "k2")
	config.Init, config.BackupKeep = true, 1
	s, _ := start(t, config)
	scheduled := filepath.Join(control.SnapshotDir(config.DataDir), "20260101T000000Z-r1.backup")
	if err := errors.Join(os.MkdirAll(filepath.Dir(scheduled), 0o700), os.WriteFile(scheduled, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	fetch(t, s)
	fetch(t, s)
	left, err := filepath.Glob(filepath.Join(filepath.Dir(scheduled), "*"))
	hidden, _ := filepath.Glob(filepath.Join(filepath.Dir(scheduled), ".*"))
	if want := []string{scheduled}; err != nil || !slices.Equal(append(left, hidden...), want) {
		t.Errorf("there are %v and %v, %v; want %v", left, hidden, err, want)
	}
}
