package convert

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var rewrite = flag.Bool("rewrite", false, "write the golden files anew")

// TestDocuments compares what is printed of each file with a golden one. The API takes those
// (cli.TestConvert).
func TestDocuments(t *testing.T) {
	files, err := filepath.Glob("testdata/*.in.*")
	if err != nil || len(files) < 5 {
		t.Fatalf("%v, %v", files, err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		got, err := Documents(file, data, "gluster")
		if err != nil {
			t.Errorf("%s: %v", file, err)
		}
		before, _, _ := strings.Cut(file, ".in.")
		golden := before + ".golden.yaml"
		if *rewrite {
			if err := os.WriteFile(golden, got, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if diff := cmp.Diff(string(want), string(got)); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", file, err, diff)
		}
	}
}

const (
	head  = "apiVersion: storage.coreos.com/v1alpha1\nkind: StorageCluster\nmetadata: {name: g}\n"
	nodes = head + "spec:\n  type: glusterfs\n  storageNodes:\n"
)

// TestDocuments_refuses: what cannot be converted is named with its file and line, and all of it at
// once.
func TestDocuments_refuses(t *testing.T) {
	for _, x := range []struct{ what, text, want string }{
		{"another kind", "apiVersion: v1\nkind: Secret\n", "f, line 1: this is Secret: "},
		{"no object", "a: 1\n", "f, line 1: this is no object: "},
		{"nothing", "# nothing\n", "f: it contains no object"},
		{"no YAML", "a:\n\t- b", "f, line 2: "},
		{
			"today's form", "apiVersion: holdfast.io/v1alpha1\nkind: StorageCluster\nmetadata: {name: g}\n",
			"f, line 1: this is StorageCluster: ",
		},
		{
			"no name", "kind: StorageCluster\napiVersion: coreos.com/v1\nspec: {type: glusterfs}\n",
			"f, line 1: metadata.name is missing",
		},
		{
			"a bad name",
			"kind: StorageCluster\napiVersion: coreos.com/v1\nmetadata:\n  name: My_Cluster\nspec: {type: glusterfs}\n",
			`f, line 4: "My_Cluster" cannot`,
		},
		{"no type", head + "spec: {}\n", "f, line 1: the type is missing"},
		{
			"a type of others", head + "spec:\n  type: swift\n",
			"f, line 5: Holdfast has no QuarterMaster type swift",
		},
		{
			"an unknown field", head + "spec:\n  type: glusterfs\n  nodez: []\n",
			"f, line 6: spec has no field nodez",
		},
		{
			"a list that is none", head + "spec:\n  type: glusterfs\n  storageNodes: 3\n",
			"f, line 6: spec.storageNodes must be a list",
		},
		{"no host", nodes + "  - devices: [/dev/sdb]\n", "f, line 7: the node names no host"},
		{
			"two hosts", nodes + "  - nodeName: a\n    nodeSelector: {b: c}\n",
			"f, line 8: nodeName and nodeSelector both",
		},
		{"twins", nodes + "  - nodeName: a\n  - nodeName: a\n", "f, line 8: node a occurs twice, first in line 7"},
		{
			"no address", nodes + "  - nodeName: a\n    storageNetwork: {ips: [b.example.com]}\n",
			"f, line 8: b.example.com of storageNetwork.ips",
		},
		{
			"no zone", nodes + "  - nodeName: a\n    glusterfs: {zone: east}\n",
			"f, line 8: zone east must be a number",
		},
		{
			"another type", nodes + "  - nodeName: a\n    type: torus\n",
			"f, line 8: type torus is not that of the cluster",
		},
		{"nfs", nodes + "  - nodeName: a\n    nfs: {readOnly: true}\n", "f, line 8: a node has no nfs section"},
		{
			"a device twice", nodes + "  - nodeName: a\n    devices: [/dev/b, /dev/b]\n",
			"f, line 8: devices names /dev/b twice",
		},
		{
			"no size", head + "spec:\n  type: torus\n  storageNodes:\n  - nodeName: a\n",
			"f, line 7: torus.size is missing",
		},
		{
			"a merged map", "x: &d {zone: 7}\n---\n" + nodes + "  - nodeName: a\n    glusterfs:\n      <<: {zone: 7}\n",
			"f, line 11: the key << takes over",
		},
		{
			"a merged map of labels", nodes + "  - nodeSelector: {a: b,\n      !!merge l: {a: c}}\n",
			"f, line 8: the key l takes over",
		},
		{"no clusters", `{"clusters": []}`, "f, line 1: the topology has no clusters"},
		{"no nodes", `{"clusters": [{"nodes": []}]}`, "f, line 1: the cluster has no nodes"},
		{
			"no manage", "{\"clusters\": [{\"nodes\": [\n{\"node\": {\"zone\": 1}}]}]}",
			"f, line 2: hostnames.manage is missing",
		},
		{
			"an address",
			"{\"clusters\": [{\"nodes\": [{\"node\": {\"hostnames\": {\n\"manage\": [\"10.0.0.1\"]}}}]}]}",
			"f, line 2: hostnames.manage 10.0.0.1 is an address",
		},
		{
			"a name of the storage network",
			"{\"clusters\": [{\"nodes\": [{\"node\": {\"hostnames\": {\n\"manage\": [\"a\"],\n\"storage\": [\"b\"]}}}]}]}",
			"f, line 3: hostnames.storage b is a name",
		},
		{
			"a device without a name",
			"{\"clusters\": [{\"nodes\": [{\"node\": {\"hostnames\": {\"manage\": [\"a\"]}},\n" +
				"\"devices\": [{\"destroydata\": true}]}]}]}",
			"f, line 2: the device has no name",
		},
	} {
		out, err := Documents("f", []byte(x.text), "gluster")
		if err == nil || !strings.Contains(err.Error(), x.want) || out != nil {
			t.Errorf("%s: %v\nwant %q, and nothing printed:\n%s", x.what, err, x.want, out)
		}
	}
	_, err := Documents("f", []byte(nodes+"  - devices: 1\n  - nodeName: a\n    x: 1\n"), "gluster")
	if err == nil || !strings.Contains(err.Error(), "line 7") || !strings.Contains(err.Error(), "line 9") {
		t.Errorf("not all faults at once: %v", err)
	}
}

// A field of a file stays in its comment, whatever it holds.
func TestDocuments_notesStayComments(t *testing.T) {
	text := head + "spec:\n  type: glusterfs\n  image: \"a\\nkind: Secret\\u0085b\"\n"
	out, err := Documents("f", []byte(text), "gluster")
	if err != nil || !strings.HasPrefix(string(out), "# left out: image a kind: Secret b. Holdfast") {
		t.Errorf("%v\n%s", err, out)
	}
}

// Aliases of aliases are not written out, and neither is one of itself.
func TestDocuments_boundsAliases(t *testing.T) {
	text := nodes + "  - nodeName: a\n    devices: &a0 [b, b, b, b, b, b, b, b, b, b]\n"
	for i := range 9 {
		text += fmt.Sprintf("    x%d: &a%d [%s]\n", i, i+1, strings.Repeat(fmt.Sprintf("*a%d, ", i), 10))
	}
	for _, x := range []struct{ text, want string }{
		{text, "f, line 12: the aliases of the file"},
		{nodes + "  - nodeName: a\n    devices: &a [*a]\n", "f, line 8: the aliases of the file"},
	} {
		out, err := Documents("f", []byte(x.text), "gluster")
		if err == nil || !strings.Contains(err.Error(), x.want) || out != nil {
			t.Errorf("%v\nwant %q", err, x.want)
		}
	}
}
