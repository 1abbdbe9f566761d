package ceph

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/ceph/cephx"
	"github.com/holdfast-storage/holdfast/driver/ceph/ids"
	"github.com/holdfast-storage/holdfast/driver/ceph/rados"
	"github.com/holdfast-storage/holdfast/driver/ceph/radostest"
)

// checkAnswers asks a cluster that has osd.0 with the given uuid and key, and no osd.7. The real Ceph and the fake one both
// have to pass it.
func checkAnswers(t *testing.T, c rados.Client, uuid, key string) {
	t.Helper()
	const other = "11111111-2222-4333-8444-555555555555"
	input := func(key string) []byte { return fmt.Appendf(nil, `{"cephx_secret": %q}`, key) }
	newer, err := cephx.NewKey(testTime)
	if err != nil {
		t.Fatal(err)
	}
	keys := []byte(cephx.Keyring("mgr.z", newer, cephx.Caps("mgr.z")))
	for _, tt := range []struct {
		name  string
		cmd   command
		input []byte
		want  error
	}{
		{"again", command{"prefix": "osd new", "uuid": uuid, "id": 0}, input(key), nil},
		{"another uuid", command{"prefix": "osd new", "uuid": other, "id": 0}, input(key), syscall.EINVAL},
		{"another key", command{"prefix": "osd new", "uuid": uuid, "id": 0}, input(newer), syscall.EEXIST},
		{"another id", command{"prefix": "osd new", "uuid": uuid, "id": 7}, input(key), syscall.EEXIST},
		{"id as text", command{"prefix": "osd new", "uuid": uuid, "id": "0"}, input(key), syscall.EINVAL},
		{"a new one", command{"prefix": "osd new", "uuid": other, "id": 7}, input(newer), nil},
		{"a new key", command{"prefix": "auth import"}, keys, nil},
		{"a new key again", command{"prefix": "auth import"}, keys, nil},
		{"unknown", command{"prefix": "osd gnu"}, nil, syscall.EINVAL},
	} {
		_, err := c.Mon(t.Context(), tt.cmd, tt.input)
		if !errors.Is(err, tt.want) {
			t.Errorf("%s: got %v, want %v", tt.name, err, tt.want)
		}
		var refused *rados.CommandError
		if tt.want != nil && !errors.As(err, &refused) {
			t.Errorf("%s: got %T, want a CommandError", tt.name, err)
		}
	}
	out, err := c.Mon(t.Context(), ask("auth ls"), nil)
	if err != nil {
		t.Fatal(err)
	}
	entities, err := parseEntities(out)
	if err != nil || !entities["mgr.z"] || !entities["osd.7"] || entities["mgr.y"] {
		t.Errorf("entities: %v, %v", entities, err)
	}
	var dump osdMap
	if out, err = c.Mon(t.Context(), ask("osd dump"), nil); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(out, &dump); err != nil {
		t.Fatal(err)
	}
	var o Observation
	dump.fill(&o)
	if got := o.OSDs[7]; got.UUID != other || got.Up || !got.In {
		t.Errorf("osd.7: %+v", got)
	}
}

func TestFake_answersForHostsAsTheRealOne(t *testing.T) {
	f := withFake(threeHosts())
	f.settle(t)
	c := f.ceph.Dial(rados.Config{})
	for _, r := range recordedForHosts {
		out := askForHosts(t, c, r.mgr, r.prefix)
		if missing := missingKeys(readRecord(t, r.prefix), decodeAny(t, out), r.prefix); len(missing) > 0 {
			t.Errorf("the fake lacks %s", strings.Join(missing, ", "))
		}
	}
}

func TestFake_answersAsTheRealOne(t *testing.T) {
	cluster := radostest.New()
	c := cluster.Dial(rados.Config{})
	if _, err := c.Mon(t.Context(), ask("status"), nil); !errors.Is(err, rados.ErrNoAnswer) {
		t.Errorf("without a mon: %v", err)
	}
	mon := api.Daemon{Spec: api.DaemonSpec{
		Type: TypeMon, ID: "a", Parameters: map[string]string{ParamMonmap: "a=x"},
	}, Status: api.DaemonStatus{State: api.DaemonRunning}}
	cluster.Sync([]api.Daemon{mon})
	key, err := cephx.NewKey(testTime)
	if err != nil {
		t.Fatal(err)
	}
	uuid := ids.OSD(worldUID, "h1", "wwn-10")
	if _, err := c.Mon(t.Context(), command{"prefix": "osd new", "uuid": uuid, "id": 0}, fmt.Appendf(nil, `{"cephx_secret": %q}`, key)); err != nil {
		t.Fatal(err)
	}
	checkAnswers(t, c, uuid, key)
	checkMoves(t, c)
	for _, prefix := range recorded {
		out, err := c.Mon(t.Context(), ask(prefix), nil)
		if err != nil {
			t.Fatal(err)
		}
		want := readRecord(t, prefix)
		if missing := missingKeys(want, decodeAny(t, out), prefix); len(missing) > 0 {
			t.Errorf("the fake lacks %s", strings.Join(missing, ", "))
		}
	}
}
