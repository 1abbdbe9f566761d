package ceph

import (
	"encoding/json"
	"errors"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-storage/holdfast/driver/ceph/crushmap"
	"github.com/holdfast-storage/holdfast/driver/ceph/location"
	"github.com/holdfast-storage/holdfast/driver/ceph/rados"
)

// checkMoves moves buckets of CRUSH. The real Ceph and the fake one both have to pass it.
func checkMoves(t *testing.T, c rados.Client) {
	t.Helper()
	add := func(name, kind string, to ...string) command {
		cmd := command{"prefix": "osd crush add-bucket", "name": name, "type": kind}
		if len(to) > 0 {
			cmd["args"] = to
		}
		return cmd
	}
	move := func(name string, to ...string) command {
		return command{"prefix": "osd crush move", "name": name, "args": to}
	}
	for _, tt := range []struct {
		name, bucket string
		cmd          command
		want         error
		in           string
	}{
		{"made", "m1", add("m1", "host"), nil, ""},
		{"made again", "m1", add("m1", "host"), nil, ""},
		{"what is missing is made", "m1", move("m1", "root=default", "rack=q1", "datacenter=e1"), nil, "q1 e1 default"},
		{"again", "m1", move("m1", "root=default", "rack=q1", "datacenter=e1"), nil, "q1 e1 default"},
		{"made at a place", "m2", add("m2", "host", "root=default", "row=w1"), nil, "w1 default"},
		{"made again elsewhere", "m2", add("m2", "host", "root=default", "rack=q1"), nil, "w1 default"},
		{"of a level that there is none of", "m2", add("m3", "shelf", "root=default"), syscall.EINVAL, "w1 default"},
		{"what is there stays where it is", "m2", move("m2", "root=default", "rack=q1", "datacenter=e2"), nil, "q1 e1 default"},
		{"a name of another type", "m2", move("m2", "root=default", "row=e1"), syscall.EINVAL, "q1 e1 default"},
		{"one that is not there", "m2", move("m3", "root=default"), syscall.ENOENT, "q1 e1 default"},
		{"not empty", "q1", command{"prefix": "osd crush rm", "name": "q1"}, syscall.ENOTEMPTY, "e1 default"},
		{"to a level that there is none of", "m2", move("m2", "root=default", "shelf=s"), nil, "default"},
	} {
		if _, err := c.Mon(t.Context(), tt.cmd, nil); !errors.Is(err, tt.want) {
			t.Errorf("%s: got %v, want %v", tt.name, err, tt.want)
		}
		if got := placeIn(t, c, tt.bucket); got != tt.in {
			t.Errorf("%s: %s is in %q, want %q", tt.name, tt.bucket, got, tt.in)
		}
	}
	for _, name := range []string{"m1", "m2", "q1", "e1", "w1"} {
		if _, err := c.Mon(t.Context(), command{"prefix": "osd crush rm", "name": name}, nil); err != nil {
			t.Error(err)
		}
	}
}

// buckets are those of CRUSH.
func buckets(t *testing.T, c rados.Client) map[string]Bucket {
	t.Helper()
	out, err := c.Mon(t.Context(), ask("osd tree"), nil)
	if err != nil {
		t.Fatal(err)
	}
	var tree struct{ Nodes []crushmap.Node }
	if err := json.Unmarshal(out, &tree); err != nil {
		t.Fatal(err)
	}
	return crushmap.TreeOf(tree.Nodes).Buckets
}

// placeIn is what a bucket is in, the smallest first.
func placeIn(t *testing.T, c rados.Client, name string) string {
	t.Helper()
	b, there := buckets(t, c)[name]
	if !there {
		t.Fatalf("there is no %s", name)
	}
	var in []string
	for _, level := range location.ToRoot {
		if b.In[level] != "" {
			in = append(in, b.In[level])
		}
	}
	return strings.Join(in, " ")
}

// checkRacks wants the hosts of realWorld to be where they are labelled to be, with the weight of an OSD each.
func checkRacks(t *testing.T, c rados.Client) {
	t.Helper()
	want := map[string]string{"h1": "r1 d1 default", "h2": "r2 default", "h3": "r3 d1 default", "h4": "r1 d1 default"}
	got := map[string]string{}
	for name, b := range buckets(t, c) {
		if b.Type == "host" && b.Weight > 0 {
			got[name] = placeIn(t, c, name)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
