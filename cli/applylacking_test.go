package cli

import (
	"strings"
	"testing"
)

const lackingFilesystem = `apiVersion: holdfast.io/v1alpha1
kind: Filesystem
metadata: {name: home}
spec:
  cluster: c
  metadataPool: {replicated: {size: 3}}
  dataPools: [{replicated: {size: 3}}]
  standbyMDS: 0
  placement: {labels: {rack: r9}}
`

// TestApply_waitsForLaterRun: a resource that was refused for lack of something in the same file is
// judged by a run that began when all of the file was written, and not by the refusal before.
func TestApply_waitsForLaterRun(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.addDisks("h1", "h2", "h3")
	b.withCeph()
	manifest := strings.Replace(manifestOn("h1", "h2", "h3"), "interval: 1s", "interval: 1h", 1)
	b.expectInput(manifest, "apply -f - --wait --timeout 5m", exitOK)
	const none = "filesystem/home: "
	b.expectInput(lackingFilesystem, "apply -f - --when-possible --wait --timeout 5m", exitRefused, none)
	labelled := "apiVersion: holdfast.io/v1alpha1\nkind: Host\nmetadata: {name: h1, labels: {rack: r9}}\n---\n" + lackingFilesystem
	b.expectInput(labelled, "apply -f - --wait --timeout 5m", exitOK, "filesystem/home unchanged")
	b.expectInput(labelled, "apply -f - --wait --timeout 5m", exitOK, "host/h1 unchanged")
}
