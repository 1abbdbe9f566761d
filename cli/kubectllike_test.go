package cli

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/cli/kube"
)

func poolNamed(name, labels string) string {
	return "---\napiVersion: holdfast.io/v1alpha1\nkind: Pool\nmetadata: {name: " + name + ", labels: {" + labels +
		"}}\nspec: {cluster: c}\n"
}

// TestLikeKubectl_names: get and delete take what kubectl takes.
func TestLikeKubectl_names(t *testing.T) {
	t.Parallel()
	p := newHome(t, "likekubectl")
	manifest := "apiVersion: holdfast.io/v1alpha1\nkind: StorageCluster\nmetadata: {name: c}\nspec: {type: ceph, ceph: {}}\n" +
		poolNamed("a", "tier: fast") + poolNamed("b", "tier: fast") + poolNamed("d", "tier: slow")
	p.must(t, exitOK, manifest, []string{"apply", "-f", "-"})
	p.must(t, exitOK, "", []string{"get", "pool/a", "pool/b"}, "a ", "b ")
	p.must(t, exitOK, "", []string{"get", "pools,storageclusters"}, "pool.holdfast.io/a", "storagecluster.holdfast.io/c")
	p.must(t, exitOK, "", []string{"get", "pools", "a", "-o", "jsonpath={.metadata.labels.tier}"}, "fast")
	p.must(t, exitOK, "", []string{"get", "pools", "-o", "custom-columns=N:.metadata.name,T:.metadata.labels.tier"}, "d     slow")
	if out := p.must(t, exitOK, "", []string{"get", "pools", "-l", "tier=fast", "-o", "name"}); strings.Contains(out, "/d") {
		t.Errorf("-l is not heeded: %s", out)
	}
	p.must(t, exitRefused, "", []string{"get", "pool/aa"}, "pool aa does not exist", "did you mean a?")
	p.must(t, exitRefused, "", []string{"get", "pool/aa", "pool/dd"}, "pool aa does not exist",
		"pool dd does not exist")
	p.must(t, exitUsage, "", []string{"get", "puddles"}, `kind "puddles" does not exist`)
	p.must(t, exitUsage, "", []string{"get", "pools", "-o", "xml"}, "jsonpath")
	p.must(t, exitUsage, "", []string{"delete", "pools"}, "pools/NAME")
	p.must(t, exitRefused, "", []string{"delete", "pool/nosuch"}, "nosuch")
	p.must(t, exitOK, "", []string{"delete", "pool/nosuch", "--ignore-not-found"}, "does not exist")
	p.must(t, exitOK, "", []string{"delete", "pool/d", "--wait=false"}, "pool/d")
	p.must(t, exitOK, "", []string{"delete", "pools", "-l", "tier=fast", "--wait=false"}, "pool/a", "pool/b")
}

// TestLikeKubectl_files: apply takes directories, addresses and kustomizations, and tells of all
// faults at once. A dry run changes nothing.
func TestLikeKubectl_files(t *testing.T) {
	t.Parallel()
	p := newHome(t, "likefiles")
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("pools/a.yaml", poolNamed("a", ""))
	write("pools/more/b.yml", poolNamed("b", ""))
	write("pools/README.md", "not YAML: [")
	write("kustomization.yaml", "namePrefix: k-\nresources: [k.yaml]\n")
	write("k.yaml", poolNamed("c", ""))
	p.must(t, exitOK, "", []string{"apply", "-f", dir + "/pools", "--dry-run"}, "pool/likefiles/a  new")
	p.must(t, exitRefused, "", []string{"get", "pool/a"}, "does not exist")
	if out := p.must(t, exitOK, "", []string{"apply", "-f", dir + "/pools"}, "pool/a created"); strings.Contains(out, "pool/b") {
		t.Errorf("without -R: %s", out)
	}
	p.must(t, exitOK, "", []string{"apply", "-R", "-f", dir + "/pools"}, "pool/b created")
	p.must(t, exitOK, "", []string{"apply", "-k", dir}, "pool/k-c created")
	served := httptest.NewServer(http.FileServer(http.Dir(dir + "/pools")))
	defer served.Close()
	p.must(t, exitOK, "", []string{"apply", "-f", served.URL + "/a.yaml"}, "pool/a")
	p.must(t, exitFailed, "", []string{"apply", "-f", served.URL + "/none.yaml"}, "404 Not Found")
	p.must(t, exitFailed, "", []string{"apply", "-f", t.TempDir()}, "has no file that ends in .yaml")
	write("pools/x.yaml", "kind: Pool\n")
	write("pools/y.yaml", "apiVersion: v1\nkind: Secret\n")
	p.must(t, exitRefused, "", []string{"apply", "-f", dir + "/pools"}, "x.yaml, document 1: kind and apiVersion",
		"y.yaml, document 1: Secret has no metadata.name")
	p.must(t, exitUsage, "", []string{"apply", "-k", dir, "--dry-run=perhaps"}, "use server or none")
}

// TestLikeKubectl_context: --context chooses a context, and its namespace counts where none is given.
func TestLikeKubectl_context(t *testing.T) {
	p := newHome(t, "likecontext")
	config, err := clientcmd.LoadFromFile(p.kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	other := config.Contexts[config.CurrentContext].DeepCopy()
	other.Namespace = "elsewhere"
	config.Contexts["other"] = other
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", file)
	for _, tt := range []struct {
		args []string
		code int
		says string
	}{
		{nil, exitOK, "in default namespace"},
		{[]string{"--context", "other"}, exitOK, "in elsewhere namespace"},
		{[]string{"--context", "other", "-n", "x"}, exitOK, "in x namespace"},
		{[]string{"--context", "none"}, exitFailed, `context "none" does not exist`},
	} {
		var out, complaint strings.Builder
		args := append([]string{"get", "pools"}, tt.args...)
		code := run(t.Context(), args, streams{in: strings.NewReader(""), out: &out, err: &complaint})
		if code != tt.code || !strings.Contains(complaint.String(), tt.says) {
			t.Errorf("%v: %d: %s", tt.args, code, complaint.String())
		}
	}
}

// TestOwnFlags: options of holdfast stand before the command of Ceph, whose own may have their names.
func TestOwnFlags(t *testing.T) {
	own := pflag.NewFlagSet("", pflag.ContinueOnError)
	own.String("cluster", "", "")
	own.StringP("namespace", "n", "", "")
	for text, want := range map[string]int{
		"-s": 0, "osd tree": 0, "-n x --cluster=c -s": 3, "--cluster c osd df --cluster d": 2, "-n": 2, "--name client.x -s": 0,
	} {
		if n := kube.LeadingFlags(own, strings.Fields(text)); n != min(want, len(strings.Fields(text))) {
			t.Errorf("%s: %d", text, n)
		}
	}
}

// TestVersion: the agents are named where the API answers; where it does not the program's own is printed.
func TestVersion(t *testing.T) {
	t.Parallel()
	p := newHome(t, "versionsof")
	var h api.Host
	if err := p.Get(t.Context(), client.ObjectKey{Name: "versionsof-1"}, &h); err != nil {
		t.Fatal(err)
	}
	h.Status.AgentVersion = "9.9.9"
	if err := p.Status().Update(t.Context(), &h); err != nil {
		t.Fatal(err)
	}
	p.must(t, exitOK, "", []string{"version"}, "Client version: ", "Platform: linux/",
		"Server version: dev (API of Kubernetes v1.", "Agent version: 9.9.9 (versionsof-1)")
	p.must(t, exitOK, "", []string{"version", "-o", "json"}, `"agents": {`)
	p.must(t, exitFailed, "", []string{"version", "-o", "xml"}, "use json")
	if out := p.must(t, exitOK, "", []string{"version", "--client"}); strings.Contains(out, "Agent") {
		t.Error(out)
	}
}
