package cli

import (
	"strings"
	"testing"
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
		{name: "twice", text: cluster + "---\n" + cluster, err: "standard input, document 2: storagecluster/ceph is there twice, first in standard input, document 1"},
		{name: "no kind", text: "metadata: {name: x}\n", err: "standard input, document 1: kind and apiVersion must be there"},
		{name: "no name", text: "apiVersion: v1\nkind: Secret\n", err: "Secret has no metadata.name"},
		{name: "nothing at all", text: "\n", err: "there is no object in it"},
		{name: "not YAML", text: "a: [", err: "standard input, document 1"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			objects, err := readManifests([]string{"-"}, strings.NewReader(tt.text), "default")
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
	for _, file := range []string{"../examples/ceph-single-host.yaml", "../examples/ceph-three-hosts.yaml", "../examples/ceph-drive-group.yaml", "../examples/ceph-demo.yaml", "../examples/glusterfs-three-nodes.yaml", "../examples/torus-three-hosts.yaml"} {
		objects, err := readManifests([]string{file}, nil, "default")
		if err != nil {
			t.Errorf("%s: %v", file, err)
		}
		clusters := 0
		for _, o := range objects {
			if o.GetKind() == "StorageCluster" {
				clusters++
			}
		}
		if clusters != 1 {
			t.Errorf("%s: %d StorageClusters, want one", file, clusters)
		}
	}
}
