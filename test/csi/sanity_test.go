package csi

import (
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestSanity runs the checks of Kubernetes' project for CSI drivers on volumes of a pool.
func TestSanity(t *testing.T) { newDriver(t).sanity() }

// sanity runs the checks for the class of the driver.
func (d *driver) sanity() {
	d.t.Helper()
	d.node("n1")
	secrets := map[string]map[string]string{}
	for _, call := range []string{
		"CreateVolume", "DeleteVolume", "ControllerPublishVolume", "ControllerUnpublishVolume",
		"ControllerValidateVolumeCapabilities", "ControllerExpandVolume",
	} {
		secrets[call+"Secret"] = d.provisioner
	}
	for _, call := range []string{"NodeStageVolume", "NodePublishVolume"} {
		secrets[call+"Secret"] = d.user
	}
	d.write("secrets", secrets)
	d.write("parameters", d.parameters)
	cmd := exec.CommandContext(d.t.Context(), "go", "tool", "-modfile=../../tools/go.mod", "csi-sanity",
		"--csi.controllerendpoint", d.path("controller"), "--csi.endpoint", d.path("n1"),
		"--csi.secrets", d.path("secrets"), "--csi.testvolumeparameters", d.path("parameters"),
		"--csi.mountdir", d.path("mount"), "--csi.stagingdir", d.path("staging"),
		"--csi.testvolumesize", "419430400", "--csi.testvolumeexpandsize", "838860800", "--ginkgo.no-color")
	out, err := cmd.CombinedOutput()
	if err != nil {
		d.t.Fatalf("%v\n%s", err, out)
	}
	if text := string(out); !strings.Contains(text, "52 Passed | 0 Failed") {
		d.t.Errorf("not all ran that the driver's capabilities include:\n%s", text)
	}
}

// write writes JSON, which is YAML too.
func (d *driver) write(name string, v any) {
	d.t.Helper()
	text, err := json.Marshal(v)
	if err == nil {
		err = os.WriteFile(d.path(name), text, 0o600)
	}
	if err != nil {
		d.t.Fatal(err)
	}
}
