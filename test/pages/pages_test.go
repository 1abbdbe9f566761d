package pages

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const page = "# Title\n\nUse `holdfast status` here.\n\n    one\n      two\n\n    three\n\nProse.\n\n" +
	"- an item\n    that goes on\n\n<!-- with: x=y -->\n<!-- before: ls -->\n<!-- run: on h2 -->\n" +
	"```\n$ sudo holdfast get pools | grep x   # all\noutput\n```\n\n" +
	"```yaml\napiVersion: holdfast.io/v1alpha1\nkind: Pool\n---\napiVersion: v1\n```\n"

func TestRead(t *testing.T) {
	file := filepath.Join(t.TempDir(), "page.md")
	if err := os.WriteFile(file, []byte(page), 0o600); err != nil {
		t.Fatal(err)
	}
	blocks, spans, err := Read(file)
	if err != nil {
		t.Fatal(err)
	}
	if len(spans) != 1 || spans[0].Text != "holdfast status" || spans[0].Line != 3 {
		t.Errorf("the spans are %+v", spans)
	}
	if len(blocks) != 3 {
		t.Fatalf("the blocks are %+v", blocks)
	}
	if diff := cmp.Diff([]string{"one", "  two", "", "three"}, blocks[0].Lines); diff != "" {
		t.Errorf("the indented block: %s", diff)
	}
	lines := blocks[1].CommandLines()
	if blocks[1].Note != "on h2" || len(lines) != 1 || lines[0].Text != "sudo holdfast get pools | grep x" {
		t.Errorf("the second block is %+v, its commands %+v", blocks[1], lines)
	}
	if before := blocks[1].Texts("before"); len(before) != 1 || before[0] != "ls" {
		t.Errorf("the situation of the second block is %q", before)
	}
	if words := blocks[2].Texts("with"); len(words) != 1 || len(blocks[2].Marks) != 1 {
		t.Errorf("the third block has the marks %+v", blocks[2].Marks)
	}
	manifests := blocks[2].Manifests()
	if blocks[2].Note != "" || len(manifests) != 1 || !strings.HasSuffix(manifests[0], "kind: Pool\n") {
		t.Errorf("the manifests are %q", manifests)
	}
}

func TestCalls(t *testing.T) {
	for _, tt := range []struct {
		line string
		want [][]string
	}{
		{"sudo holdfast plan -f x.yaml", [][]string{{"plan", "-f", "x.yaml"}}},
		{"ls; holdfast status && A=b holdfast why x", [][]string{{"status"}, {"why", "x"}}},
		{
			`holdfast apply --plan "$(sudo holdfast plan -f c.yaml -o name)" --wait`,
			[][]string{{"plan", "-f", "c.yaml", "-o", "name"}, {"apply", "--plan", "x", "--wait"}},
		},
		{`holdfast host label h1 --reason "new memory"`, [][]string{{"host", "label", "h1", "--reason", "new memory"}}},
		{"kubectl exec deploy/x -- holdfast doctor", [][]string{{"doctor"}}},
		{"source <(holdfast completion bash)", [][]string{{"completion", "bash"}}},
		{"holdfast get pool p -o yaml > p.yaml", [][]string{{"get", "pool", "p", "-o", "yaml", ">", "p.yaml"}}},
		{"apt-get install holdfast", nil},
	} {
		if diff := cmp.Diff(tt.want, Calls(tt.line, "holdfast")); diff != "" {
			t.Errorf("%s: %s", tt.line, diff)
		}
	}
}
