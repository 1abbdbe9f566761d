package ceph

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-storage/holdfast/agent/service"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/rbdmirror"
)

// rbdStandIn answers as rbd 16.2 does, and writes down what it was asked and told.
const rbdStandIn = `#!/bin/sh
shift 6
echo "$@" >>"$RBD_LOG"
case "$*" in
*"pool info"*off) echo '{"mode":"disabled"}' ;;
*"pool info"*) echo '{"mode":"image","site_name":"x","peers":[{"uuid":"u","direction":"rx-only","site_name":"b","mirror_uuid":"","client_name":"client.rbd-mirror-peer"}]}' ;;
*"pool status"*) echo '{"summary":{"health":"OK","daemon_health":"OK","image_health":"OK","states":{"replaying":2}}}' ;;
*import*) cat >"$RBD_LOG.stdin" ;;
*) echo "it is the wrong pool" >&2; exit 1 ;;
esac
`

func TestRBDMirror(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "rbd"), []byte(rbdStandIn), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	log := filepath.Join(dir, "log")
	t.Setenv("RBD_LOG", log)
	l := &service.Local{Daemon: &api.Daemon{}, Data: dir, Run: answering(t, "{}").Run, PID: 7, Parameters: map[string]string{rbdmirror.ParamPools: "vms off"}}
	l.Daemon.Spec.ID = "dr-a"
	for range 2 {
		text, err := RBDMirror{}.Report(t.Context(), l)
		r, bad := rbdmirror.Parse(text)
		if err != nil || bad != nil {
			t.Fatal(err, bad)
		}
		want := map[string]rbdmirror.Pool{
			"off": {Mode: "disabled"},
			"vms": {Mode: "image", Health: "OK", Images: map[string]int{"replaying": 2}, Peers: []rbdmirror.Peer{{UUID: "u", Site: "b", Direction: "rx-only"}}},
		}
		if diff := cmp.Diff(want, r.Pools); diff != "" || !r.Up || r.PID != 7 || r.Problem != "" {
			t.Errorf("%+v (-want +got):\n%s", r, diff)
		}
	}
	asks := func(want int, when string) {
		t.Helper()
		if asked, _ := os.ReadFile(log); strings.Count(string(asked), "\n") != want {
			t.Errorf("%s: asked %s", when, asked)
		}
	}
	asks(6, "with a pool that is not mirrored yet")
	l.Parameters[rbdmirror.ParamPools] = "vms"
	for range 3 {
		if _, err := (RBDMirror{}).Report(t.Context(), l); err != nil {
			t.Fatal(err)
		}
	}
	asks(8, "with all well")
	token := rbdmirror.Token{FSID: "f", ClientID: "c", Key: "k", MonHost: "m"}.Encode()
	cmd := service.Command{Verb: rbdmirror.VerbImport, Params: map[string]string{rbdmirror.ParamPool: "vms"}, Secret: map[string][]byte{api.SecretEntryToken: []byte(token)}}
	if _, err := (RBDMirror{}).Perform(t.Context(), l, cmd); err != nil {
		t.Fatal(err)
	}
	told, _ := os.ReadFile(log + ".stdin")
	if asked, _ := os.ReadFile(log); string(told) != token || strings.Contains(string(asked), token) || !strings.Contains(string(asked), "import --direction rx-only vms -") {
		t.Errorf("asked %s, and told %s", asked, told)
	}
	cmd.Secret = map[string][]byte{api.SecretEntryToken: []byte("k")}
	if _, err := (RBDMirror{}).Perform(t.Context(), l, cmd); err == nil || !strings.Contains(err.Error(), "not a bootstrap token") {
		t.Error(err)
	}
	cmd = service.Command{Verb: rbdmirror.VerbEnable, Params: map[string]string{rbdmirror.ParamPool: "vms", rbdmirror.ParamMode: "image"}}
	if _, err := (RBDMirror{}).Perform(t.Context(), l, cmd); err == nil || !strings.Contains(err.Error(), "it is the wrong pool") {
		t.Error(err)
	}
}
