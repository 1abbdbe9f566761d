package imports

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// TestKubeTests sees to it that tests that need a Kubernetes run in the part of hack/run-tests that
// has one.
func TestKubeTests(t *testing.T) {
	const kube, format = module + "test/kube", "{{.ImportPath}} {{.TestImports}} {{.XTestImports}}"
	out, err := exec.Command("go", "list", "-f", format, module+"...").Output()
	if err != nil || len(out) == 0 {
		t.Fatalf("%d bytes, %v", len(out), err)
	}
	for line := range strings.Lines(string(out)) {
		path, imports, _ := strings.Cut(line, " ")
		names := strings.FieldsFunc(imports, func(r rune) bool { return strings.ContainsRune("[] \n", r) })
		needs := slices.ContainsFunc(names, func(name string) bool { return under(name, kube) })
		if needs && !under(path, kube) {
			t.Errorf("tests of %s need a Kubernetes, which those below test/kube alone have: move them there", path)
		}
	}
}
