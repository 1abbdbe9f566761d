package cli

import (
	"os"
	"strings"
	"testing"
)

// TestApply_again: what was applied once may be applied again, also after the engine took it on, and however sizes and times are written: nobody
// else has set anything.
func TestApply_again(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.addDisks("h1", "h2", "h3")
	b.withCeph()
	manifest := strings.Replace(manifestOn("h1", "h2", "h3"), "interval: 1s, ceph: {mon: {count: 3}", "interval: 1000ms, ceph: {mon: {count: 3, replaceAfter: 60m}", 1)
	for _, name := range []string{"ceph-pools", "ceph-filesystem"} {
		example, err := os.ReadFile("../examples/" + name + ".yaml")
		b.must(err)
		text := strings.ReplaceAll(string(example), "cluster: ceph", "cluster: c")
		manifest += "---\n" + strings.ReplaceAll(text, "maxBytes: 500Gi", "maxBytes: 1024Mi")
	}
	b.expectInput(manifest, "apply -f - --wait --timeout 5m", exitOK, "filesystem/home created", "pool/images created")
	code, again := b.run(manifest, "apply", "-f", "-")
	if code != exitOK || strings.Contains(again, "configured") || !strings.Contains(again, "storagecluster/c unchanged") {
		t.Errorf("the same was applied again: exit code %d\n%s", code, again)
	}
	b.expectInput(strings.Replace(manifest, "replaceAfter: 60m", "replaceAfter: 120m", 1), "apply -f -", exitOK, "storagecluster/c configured")
}
