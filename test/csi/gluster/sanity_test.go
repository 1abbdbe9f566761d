package gluster

import (
	"os"
	"strings"
	"testing"
)

// class are the parameters of a StorageClass.
var class = map[string]string{"backend": "glusterfs", "cluster": "gluster", "namespace": "default"}

// TestSanity runs the checks of Kubernetes' project for CSI drivers.
func TestSanity(t *testing.T) {
	b := newBed(t)
	b.write("parameters", class)
	wd, err := os.Getwd()
	b.must(err)
	cmd := b.Lab.Host(1).Command(t.Context(), "go", "tool", "-modfile=../../../tools/go.mod", "csi-sanity",
		"--csi.controllerendpoint", b.path("controller"), "--csi.endpoint", b.path("h1.sock"),
		"--csi.testvolumeparameters", b.path("parameters"),
		"--csi.mountdir", "/var/lib/mount", "--csi.stagingdir", "/var/lib/staging",
		"--csi.testvolumesize", "419430400", "--csi.testvolumeexpandsize", "838860800",
		"--ginkgo.no-color")
	cmd.Dir = wd
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
