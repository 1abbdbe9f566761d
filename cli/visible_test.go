package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// TestRun_visible: whatever stands in what is printed, the terminal acts on none of it.
func TestRun_visible(t *testing.T) {
	t.Parallel()
	var out, complaint bytes.Buffer
	if code := run(context.Background(), []string{"apply", "-f", "/nowhere/\x1b[2J"}, streams{in: strings.NewReader(""), out: &out, err: &complaint}); code == exitOK {
		t.Fatal("a file that is not there was applied")
	}
	if text := complaint.String(); strings.Contains(text, "\x1b") || !strings.Contains(text, `\x1b[2J`) {
		t.Errorf("it complains: %q", text)
	}
	p := newHome(t, "visible")
	p.editHost(t, "visible-1", func(h *api.Host) { h.Spec.Reason = "\x1b]0;owned\x07 \u202egnp" })
	for _, args := range [][]string{{"get", "hosts", "visible-1", "-o", "yaml"}, {"host", "list", "-o", "wide"}} {
		out.Reset()
		complaint.Reset()
		run(context.Background(), append([]string{"--kubeconfig", p.kubeconfig}, args...), streams{in: strings.NewReader(""), out: &out, err: &complaint})
		if text := out.String() + complaint.String(); strings.ContainsAny(text, "\x1b\x07\u202e") || !strings.Contains(text, "owned") {
			t.Errorf("%q prints %q", args, text)
		}
	}
	out.Reset()
	p.editHost(t, "visible-2", func(h *api.Host) { h.Spec.Reason = "\u009b2J" })
	args := []string{"--kubeconfig", p.kubeconfig, "get", "hosts", "visible-2", "-o", "json"}
	run(context.Background(), args, streams{in: strings.NewReader(""), out: &out, err: &complaint})
	var h api.Host
	if err := json.Unmarshal(out.Bytes(), &h); err != nil || h.Spec.Reason != "\u009b2J" {
		t.Errorf("as JSON: %q, %v", h.Spec.Reason, err)
	}
	out.Reset()
	p.editHost(t, "visible-2", func(h *api.Host) { h.Spec.Reason = "a\u200db" })
	args[len(args)-1] = "yaml"
	run(context.Background(), args, streams{in: strings.NewReader(""), out: &out, err: &complaint})
	if err := yaml.Unmarshal(out.Bytes(), &h); err != nil || h.Spec.Reason != "a\u200db" {
		t.Errorf("as YAML: %q, %v", h.Spec.Reason, err)
	}
}
