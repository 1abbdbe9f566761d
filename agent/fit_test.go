package agent

import (
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	"pgregory.net/rapid"

	"github.com/holdfast-storage/holdfast/api/crd"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// schemaOf is the validator of a kind's CRD.
func schemaOf(t *testing.T, kind string) validation.SchemaValidator {
	t.Helper()
	all, err := crd.All()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range all {
		if c.Spec.Names.Kind != kind {
			continue
		}
		var schema apiextensions.JSONSchemaProps
		if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(c.Spec.Versions[0].Schema.OpenAPIV3Schema, &schema, nil); err != nil {
			t.Fatal(err)
		}
		v, _, err := validation.NewSchemaValidator(&schema)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	t.Fatalf("there is no kind %s", kind)
	return nil
}

// anything is what a device, a file or a program may say: text, bytes that are none, and much of both.
func anything() *rapid.Generator[string] {
	bytes := rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) })
	long := rapid.Map(rapid.StringN(1, 3, -1), func(s string) string {
		for len(s) < 9000 {
			s += s
		}
		return s
	})
	return rapid.OneOf(rapid.String(), bytes, long, rapid.SampledFrom([]string{"", "-x", "../../x", "a\nb", "\x1b[2J", "a\x00"}))
}

// long is text that is repeated up to about n bytes, and not beyond.
func long(s string, n int) string { return strings.Repeat(s, n/max(1, len(s))) }

// TestFit: whatever devices and programs say of themselves, the API takes the report.
func TestFit(t *testing.T) {
	host, daemon := schemaOf(t, "Host"), schemaOf(t, "Daemon")
	check := func(t *rapid.T, v validation.SchemaValidator, object any) {
		m, err := kruntime.DefaultUnstructuredConverter.ToUnstructured(object)
		if err != nil {
			t.Fatal(err)
		}
		if errs := validation.ValidateCustomResource(nil, m, v); len(errs) > 0 {
			t.Fatalf("%v", errs.ToAggregate())
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		say := func(what string) string { return anything().Draw(t, what) }
		many := func(what string) []string { return rapid.SliceOfN(anything(), 0, 3).Draw(t, what) }
		h := &api.Host{Status: api.HostStatus{
			AgentVersion: say("version"), BootID: "8f0f1d4e-4f8a", Runtime: api.RuntimeDetached,
			Devices: []api.Device{{
				ID: "wwn-1", Path: "/dev/sdb", Kind: api.DeviceDisk, Availability: api.DeviceAvailable, Media: api.MediaRotational,
				Vendor: say("vendor"), Model: say("model"), Serial: say("serial"), WWN: say("wwn"),
				Links: many("links"), Holders: many("holders"), MountPoints: many("mounts"), Reasons: many("reasons"),
				Filesystem: &api.DeviceFilesystem{Type: say("type"), UUID: say("uuid"), Label: say("label")},
				Ceph:       &api.DeviceCeph{FSID: say("fsid"), OSDUUID: say("osd uuid"), Part: say("part")},
			}},
			Foreign: []api.ForeignDaemon{{Type: "ceph-osd", ID: say("id"), Cluster: say("cluster"), Data: say("data"), Unit: say("unit"), Started: metav1.NowMicro()}},
		}}
		fitHost(&h.Status)
		check(t, host, h)

		d := &api.Daemon{
			Spec: api.DaemonSpec{State: api.WantRunning, Command: []string{"true"}},
			Status: api.DaemonStatus{
				State: api.DaemonFailed, Message: say("message"), Version: say("release"), Report: long(say("report"), api.MaxReport),
				LastExit: &api.DaemonExit{Time: metav1.NowMicro(), Reason: say("reason"), Log: say("log")},
			},
		}
		fitDaemon(&d.Status)
		check(t, daemon, d)
	})
}
