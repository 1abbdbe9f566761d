package cli

import (
	"path/filepath"
	"strings"
	"testing"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/cli/kube"
)

func TestReadManifests(t *testing.T) {
	const cluster = "apiVersion: holdfast.io/v1alpha1\nkind: StorageCluster\nmetadata: {name: ceph}\n"
	tests := []struct {
		name, text string
		want       []string // namespace/kind/name
		err        string
	}{
		{name: "one", text: cluster, want: []string{"default/storagecluster/ceph"}},
		{name: "empty documents are passed over", text: "---\n# nothing\n---\n" + cluster + "---\n", want: []string{"default/storagecluster/ceph"}},
		{name: "its own namespace is kept", text: strings.Replace(cluster, "name: ceph", "name: ceph, namespace: x", 1), want: []string{"x/storagecluster/ceph"}},
		{name: "twice", text: cluster + "---\n" + cluster, err: "standard input, document 2: storagecluster/ceph occurs twice, first in standard input, document 1"},
		{name: "no kind", text: "metadata: {name: x}\n", err: "standard input, document 1: kind and apiVersion are missing"},
		{name: "no name", text: "apiVersion: v1\nkind: Secret\n", err: "Secret has no metadata.name"},
		{name: "nothing at all", text: "\n", err: "it contains no object"},
		{
			name: "a key twice", text: cluster + "---\n# the second\n" + strings.Replace(cluster, "name: ceph", "name: b", 1) + "spec:\n  ceph:\n    mon:\n      count: 3\n    mgr: {}\n    mon:\n      count: 1\n",
			err: `standard input, line 14: the key "mon" occurs twice`,
		},
		{name: "a key twice in a flow", text: strings.Replace(cluster, "name: ceph", "name: ceph, name: b", 1), err: `standard input, line 3: the key "name" occurs twice`},
		{
			name: "a key twice in JSON", text: `{"apiVersion": "holdfast.io/v1alpha1",` + "\n" + `"kind": "Pool", "metadata": {"name": "a"}, "kind": "Volume"}`,
			err: `standard input, line 2: the key "kind" occurs twice`,
		},
		{
			name: "a map that takes over another", want: []string{"default/pool/a"},
			text: "apiVersion: holdfast.io/v1alpha1\nkind: Pool\nmetadata:\n  name: a\n  labels: &l {x: a, z: b}\n  annotations: {<<: *l, z: c}\n",
		},
		{
			name: "a list", text: "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: holdfast.io/v1alpha1, kind: Pool, metadata: {name: a}}\n- {apiVersion: holdfast.io/v1alpha1, kind: Volume, metadata: {name: b, namespace: x}}\n",
			want: []string{"default/pool/a", "x/volume/b"},
		},
		{name: "a list of a kind", text: "apiVersion: holdfast.io/v1alpha1\nkind: PoolList\nmetadata: {resourceVersion: \"7\"}\nitems:\n- metadata: {name: a}\n", want: []string{"default/pool/a"}},
		{name: "a list with nothing in it", text: "apiVersion: v1\nkind: List\nitems: []\n", err: "it contains no object"},
		{name: "a list of words", text: "apiVersion: v1\nkind: List\nitems: [a]\n", err: "standard input, document 1, item 1: kind and apiVersion are missing"},
		{name: "a word", text: "foo\n", err: "standard input, document 1: this is a string, not an object: an object begins with apiVersion"},
		{name: "not YAML", text: "a: [", err: "standard input, document 1"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			objects, err := readManifests(kube.Files{Names: []string{"-"}}, strings.NewReader(tt.text), "default")
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Fatalf("error %v, want one that says %q", err, tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, o := range objects {
				got = append(got, o.GetNamespace()+"/"+o.String())
			}
			if strings.Join(got, " ") != strings.Join(tt.want, " ") {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}

func TestExamples_areManifests(t *testing.T) {
	files, err := filepath.Glob("../examples/*.yaml")
	if err != nil || len(files) < 5 {
		t.Fatalf("examples %v, %v", files, err)
	}
	for _, file := range files {
		objects, err := readManifests(kube.Files{Names: []string{file}}, nil, "default")
		if err != nil {
			t.Errorf("%s: %v", file, err)
		}
		clusters := 0
		for _, o := range objects {
			switch {
			case o.GetKind() == "StorageCluster":
				clusters++
			case api.NewResource(o.GetKind()) != nil:
				clusters = max(1, clusters) // what lies in a cluster that another file declares
			}
		}
		if clusters != 1 {
			t.Errorf("%s: %d StorageClusters, want one", file, clusters)
		}
	}
}

// TestManifest_lines: each fault of a file is named with its field and line, in one go.
func TestManifest_lines(t *testing.T) {
	t.Parallel()
	p := newHome(t, "faulty")
	const file = "# pools\n---\n# nothing\n---\napiVersion: holdfast.io/v1alpha1\nkind: Pool\n" +
		"metadata: {name: a}\nspec:\n  cluster: c\n" +
		"  replicated: {size: -7}\n---\napiVersion: holdfast.io/v1alpha1\nkind: Pool\n" +
		"metadata:\n  name: b\nspec:\n  cluster: c\n  nosuch: 1\n"
	out := p.must(t, exitRefused, file, []string{"apply", "-f", "-"})
	for _, want := range []string{
		"pool/a (standard input, document", "line 10): ", "spec.replicated.size",
		"pool/b (standard input", "line 18): ", ".spec.nosuch",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in:\n%s", want, out)
		}
	}
}
