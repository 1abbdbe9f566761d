package torus

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The texts are those that torusctl v0.1.2 printed.
func TestParsePeers(t *testing.T) {
	const text = "http://127.0.0.1:40003,bb,1.0 GiB,108 MiB,OK,4 seconds ago,0 B/sec\n" +
		"http://127.0.0.1:40004,cc,1.0 GiB,0 B,Avail,now,1.5 MiB/sec\n,aa,???,???,DOWN,Missing,\n"
	got, moving, err := ParsePeers(text)
	want := []Peer{
		{UUID: "aa", State: PeerDown},
		{Address: "http://127.0.0.1:40003", UUID: "bb", State: PeerOK, Size: 1 << 30, Used: 108 << 20},
		{Address: "http://127.0.0.1:40004", UUID: "cc", State: PeerAvail, Size: 1 << 30},
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil || !moving {
		t.Errorf("moving %v, error %v (-want +got):\n%s", moving, err, diff)
	}
	for _, bad := range []string{"a,b", "http://x,u,1 QiB,0 B,OK,now,0 B/sec", `"`} {
		if _, _, err := ParsePeers(bad); err == nil {
			t.Errorf("%q was read", bad)
		}
	}
}

func TestParseVolumes(t *testing.T) {
	got, err := ParseVolumes("vol2,1.0 GiB,block,in-use\nvol1,100 MiB,block\n")
	want := []Volume{{Name: "vol1", Size: "100 MiB"}, {Name: "vol2", Size: "1.0 GiB", InUse: true}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("error %v (-want +got):\n%s", err, diff)
	}
	if _, err := ParseVolumes("vol1\n"); err == nil {
		t.Error("a line of one column was read")
	}
}

func TestParseNumbers(t *testing.T) {
	if n, err := ParseReplication("Ring: Ketama\nReplication:2\nPeers:\n\taa\n\tbb\n"); n != 2 || err != nil {
		t.Errorf("replication %d, %v", n, err)
	}
	if n, err := ParseReplication("Ring: Empty\n"); n != 0 || err != nil {
		t.Errorf("replication of an empty ring: %d, %v", n, err)
	}
	if _, err := ParseReplication("Replication:two\n"); err == nil {
		t.Error("a word was read as a number")
	}
	if got := SizeText(100 << 20); got != "100 MiB" {
		t.Errorf("100 MiB are written %q", got)
	}
}

func TestArguments(t *testing.T) {
	for verb, want := range map[string][]string{
		VerbPeerAdd: {"peer", "add", "a", "b"}, VerbPeerForce: {"peer", "remove", "--force", "a", "b"},
		VerbReplication: {"ring", "set-replication", "a b"}, VerbCreate: {"volume", "create-block", "a b", "7"},
	} {
		got, err := Arguments(verb, "a b", map[string]string{ParamBytes: "7"})
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%s: %v\n%s", verb, err, diff)
		}
	}
	if _, err := Arguments("wipe", "", nil); err == nil {
		t.Error("an unknown command was given arguments")
	}
}
