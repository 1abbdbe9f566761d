package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/holdfast-storage/holdfast/cli/kube"
)

// TestConvert: the API takes all that 'holdfast convert' prints, and 'apply' refuses the files
// themselves, and says so.
func TestConvert(t *testing.T) {
	t.Parallel()
	p := newHome(t, "converted")
	placed := regexp.MustCompile(`document 1, (item 1, )?line `)
	files, err := filepath.Glob("convert/testdata/*.in.*")
	if err != nil || len(files) < 5 {
		t.Fatalf("%v, %v", files, err)
	}
	for _, file := range files {
		out := p.must(t, exitOK, "", []string{"convert", "-f", file})
		converted := filepath.Join(t.TempDir(), "converted.yaml")
		if err := os.WriteFile(converted, []byte(out), 0o600); err != nil {
			t.Fatal(err)
		}
		objects, err := readManifests(kube.Files{Names: []string{converted}}, nil, "converted")
		if err != nil {
			t.Errorf("%s: %v", file, err)
		}
		for _, o := range objects {
			o.SetNamespace("converted")
			err := p.Create(t.Context(), o.Unstructured, client.DryRunAll, client.FieldValidation("Strict"))
			if err != nil {
				t.Errorf("%s: %s: %v", file, o, err)
			}
		}
		out = p.must(t, exitRefused, "", []string{"apply", "-f", file})
		if !placed.MatchString(out) || !strings.Contains(out, "'holdfast convert -f "+file+"'") {
			t.Errorf("%s is refused without its line, or without the command that converts it:\n%s", file, out)
		}
	}
	out := p.must(t, exitRefused, "a: 1\n", []string{"convert", "-f", "-"})
	if !strings.Contains(out, "standard input, line 1: ") {
		t.Errorf("no file and line in:\n%s", out)
	}
	p.must(t, exitUsage, "", []string{"convert"})
}
