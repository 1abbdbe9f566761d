package gluster

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// class are the parameters of a StorageClass.
var class = map[string]string{"backend": "glusterfs", "cluster": "gluster", "namespace": "default"}

// TestSanity runs the checks of Kubernetes' project for CSI drivers.
func TestSanity(t *testing.T) {
	b := newBed(t)
	b.write("parameters", class)
	// It is built here: a host of the lab cannot connect to the proxy of Go modules, and has a /tmp
	// of its own.
	program, err := filepath.Abs("../../../.cache/csi-sanity")
	b.must(err)
	build := exec.CommandContext(t.Context(), "go", "build", "-modfile=../../../tools/go.mod", "-o", program,
		"github.com/kubernetes-csi/csi-test/v5/cmd/csi-sanity")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("while building csi-sanity: %v\n%s", err, out)
	}
	cmd := b.Lab.Host(1).Command(t.Context(), program,
		"--csi.controllerendpoint", b.path("controller"), "--csi.endpoint", b.path("h1.sock"),
		"--csi.testvolumeparameters", b.path("parameters"),
		"--csi.mountdir", "/var/lib/mount", "--csi.stagingdir", "/var/lib/staging",
		"--csi.testvolumesize", "419430400", "--csi.testvolumeexpandsize", "838860800",
		"--ginkgo.no-color")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if text := string(out); !strings.Contains(text, "52 Passed | 0 Failed") {
		t.Errorf("not all ran that the driver's capabilities include:\n%s", text)
	} else {
		t.Log(text[strings.LastIndex(text, "Ran "):])
	}
}
