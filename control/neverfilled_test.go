package control_test

import (
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
)

// A seat that was taken and never filled holds nothing that a control plane could be made of.
func TestRestore_neverFilled(t *testing.T) {
	t.Parallel()
	config := newConfig(t, t.TempDir(), "n1")
	config.Init = true
	_, stop := start(t, config)
	stop()
	dir := filepath.Join(config.DataDir, "etcd")
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	emptyDatabase(t, dir)
	_, err := restoreInto(t, config, "")
	wantError(t, err, "was to become a member of etcd, but never received the data: restore a backup")
}

// emptyDatabase makes a database in which nothing was ever written.
func emptyDatabase(t *testing.T, dir string) {
	t.Helper()
	c := embed.NewConfig()
	c.Dir, c.LogLevel = dir, "panic"
	local := []url.URL{{Scheme: "http", Host: "127.0.0.1:0"}}
	c.ListenPeerUrls, c.ListenClientUrls = local, local
	member, err := embed.StartEtcd(c)
	if err != nil {
		t.Fatal(err)
	}
	defer member.Close()
	select {
	case <-member.Server.ReadyNotify():
	case <-time.After(time.Minute):
		t.Fatal("etcd does not begin")
	}
}
