package convert

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-storage/holdfast/cli/exit"
	"github.com/holdfast-storage/holdfast/cli/kube"
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
		got, err := documents(file, string(data))
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

func documents(file, text string) ([]byte, error) {
	return (&Conversion{Name: "gluster"}).Documents(file, []byte(text))
}

const (
	head  = "apiVersion: storage.coreos.com/v1alpha1\nkind: StorageCluster\nmetadata: {name: g}\n"
	nodes = head + "spec:\n  type: glusterfs\n  storageNodes:\n"

	heketiDevices = `{"clusters": [{"nodes": [{"node": {"hostnames": {"manage": ["a"]}}, "devices": [`
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
		{"twins", nodes + "  - nodeName: a\n  - nodeName: a\n", "f, line 8: StorageNode a occurs twice, first in f, line 7"},
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
		{
			"fields where there are none", head + "spec:\n  type: torus\n  torus:\n    size: 3\n",
			"f, line 7: spec.torus has no fields: remove size",
		},
		{
			"a cluster twice", head + "spec: {type: glusterfs}\n---\n" + head + "spec: {type: glusterfs}\n",
			"f, line 6: StorageCluster g occurs twice, first in f, line 1",
		},
		{
			"an item of a List", "kind: List\napiVersion: v1\nitems:\n- kind: Secret\n  apiVersion: v1\n",
			"f, line 4: this is Secret: ",
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
		{"a device that is null", heketiDevices + "\nnull]}]}]}", "f, line 2: the device has no name"},
		{"a device that is empty", heketiDevices + "\n\"\"]}]}]}", "f, line 2: the device has no name"},
		{
			"a device of heketi's twice", heketiDevices + "\"/dev/b\",\n{\"name\": \"/dev/b\"}]}]}]}",
			"f, line 2: devices names /dev/b twice",
		},
	} {
		out, err := documents("f", x.text)
		if err == nil || !strings.Contains(err.Error(), x.want) || out != nil {
			t.Errorf("%s: %v\nwant %q, and nothing printed:\n%s", x.what, err, x.want, out)
		}
	}
	_, err := documents("f", nodes+"  - devices: 1\n  - nodeName: a\n    x: 1\n")
	if err == nil || !strings.Contains(err.Error(), "line 7") || !strings.Contains(err.Error(), "line 9") {
		t.Errorf("not all faults at once: %v", err)
	}
}

// A field of a file stays in its comment, whatever it holds.
func TestDocuments_notesStayComments(t *testing.T) {
	text := head + "spec:\n  type: glusterfs\n  image: \"a\\nkind: Secret\\u0085b\"\n"
	out, err := documents("f", text)
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
		out, err := documents("f", x.text)
		if err == nil || !strings.Contains(err.Error(), x.want) || out != nil {
			t.Errorf("%v\nwant %q", err, x.want)
		}
	}
}

// A text keeps its hidden characters, whatever writes them as escapes later.
func TestDocuments_hidden(t *testing.T) {
	out, err := documents("f", nodes+"  - nodeName: a\n    devices: [\"/dev/a\u200db\"]\n")
	if err != nil || !strings.Contains(string(out), `"/dev/a\u200db"`) {
		t.Errorf("%v\n%s", err, out)
	}
}

// Objects are the same ones in whatever file they stand.
func TestConversion_refusesTwinsOfFiles(t *testing.T) {
	c := &Conversion{Name: "gluster"}
	text := []byte(heketiDevices + `"/dev/b"]}]}]}`)
	if _, err := c.Documents("f", text); err != nil {
		t.Fatal(err)
	}
	_, err := c.Documents("g", text)
	for _, want := range []string{
		"g, line 1: StorageCluster gluster occurs twice, first in f, line 1",
		"g, line 1: StorageNode a occurs twice, first in f, line 1",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v\nwant %q", err, want)
		}
	}
}

func TestConvert_refusesNames(t *testing.T) {
	file := "testdata/topology.in.json"
	for _, name := range []string{"", "Bad_Name"} {
		var out bytes.Buffer
		err := Home{Out: &out}.convert(kube.Files{Names: []string{file}}, name)
		var coded *exit.Error
		if !errors.As(err, &coded) || coded.Code != exit.Usage || out.Len() > 0 {
			t.Errorf("--name %q: %v\n%s", name, err, out.String())
		}
	}
}

// TestRefuse_list: apply sends people to convert also for what stands in a List.
func TestRefuse_list(t *testing.T) {
	text, err := os.ReadFile("testdata/list.in.yaml")
	if err != nil {
		t.Fatal(err)
	}
	o := map[string]any{
		"apiVersion": "coreos.com/v1", "kind": "StorageNode", "metadata": map[string]any{"name": "node-1"},
	}
	if err := Refuse("f, document 1, item 2", text, o); err == nil ||
		!strings.HasPrefix(err.Error(), "f, document 1, item 2, line 15: ") {
		t.Error(err)
	}
}
