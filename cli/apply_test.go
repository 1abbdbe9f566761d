package cli

import (
	"bytes"
	"context"
	"errors"
	"net"
	"strings"
	"syscall"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestPlainError(t *testing.T) {
	tests := []struct{ name, server, want string }{
		{
			"unknown field", "failed to create typed patch object (default/ceph; holdfast.io/v1alpha1, Kind=StorageCluster): .spec.ceph.mon.cuont: field not declared in schema",
			".spec.ceph.mon.cuont: field not declared in schema",
		},
		{"rules left out", `"ceph" is invalid: [spec.type: Unsupported value: "zfs", ` + incomplete + "]", `"ceph" is invalid: [spec.type: Unsupported value: "zfs"]`},
		{"anything else", "the server is away", "the server is away"},
	}
	for _, tt := range tests {
		if got := (&plainError{errors.New(tt.server)}).Error(); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

// TestRun_exitCodes: a wrong command line is told apart from work that failed, and needs no server to be seen.
func TestRun_exitCodes(t *testing.T) {
	dir := t.TempDir()
	tests := []struct {
		name string
		args []string
		code int
		says string
	}{
		{"version", []string{"version"}, exitOK, ""},
		{"completion", []string{"completion", "bash"}, exitOK, ""},
		{"unknown command", []string{"frobnicate"}, exitUsage, "holdfast --help"},
		{"unknown flag", []string{"apply", "--nonsense"}, exitUsage, "holdfast apply --help"},
		{"no file", []string{"apply"}, exitUsage, "-f FILE"},
		{"unknown output", []string{"apply", "-f", "x", "-o", "xml"}, exitUsage, "use json"},
		{"missing file", []string{"apply", "-f", dir + "/none.yaml"}, exitFailed, "none.yaml"},
		{"delete both ways", []string{"delete", "-f", "x", "host", "h1"}, exitUsage, "either"},
		{"too few arguments", []string{"get"}, exitUsage, "holdfast get --help"},
		{"too many arguments", []string{"status", "a", "b"}, exitUsage, "holdfast status --help"},
		{"a token for the past", []string{"token", "create", "--ttl", "-5m"}, exitUsage, "between 1m and 720h"},
		{"a token for nobody", []string{"token", "create", "--role", "foo"}, exitUsage, "does not exist"},
		{"no server here", []string{"status", "--data-dir", dir}, exitFailed, "holdfast server --init"},
		{"server without a word on what to do", []string{"server", "--data-dir", dir}, exitFailed, "--init"},
		{"agent without a token", []string{"agent", "--data-dir", dir}, exitFailed, "--join"},
	}
	t.Setenv("KUBECONFIG", "")
	t.Setenv("HOLDFAST_KUBECONFIG", "")
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var out, complaint bytes.Buffer
			code := run(context.Background(), tt.args, streams{in: strings.NewReader(""), out: &out, err: &complaint})
			if code != tt.code {
				t.Errorf("exit code %d, want %d: %s", code, tt.code, complaint.String())
			}
			if !strings.Contains(complaint.String(), tt.says) {
				t.Errorf("%q is not in %q", tt.says, complaint.String())
			}
		})
	}
}

func TestIsRefusal(t *testing.T) {
	kind := schema.GroupKind{Group: "holdfast.io", Kind: "StorageCluster"}
	tests := []struct {
		name string
		err  error
		want bool
	}{
		{"the object is invalid", apierrors.NewInvalid(kind, "ceph", nil), true},
		{"the kind is not known", &meta.NoKindMatchError{GroupKind: kind}, true},
		{"nobody listens", &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}, false},
		{"no answer in time", context.DeadlineExceeded, false},
		{"the server cannot reach etcd", apierrors.NewInternalError(errors.New("etcd")), false},
		{"a field that is not known, with code 500", apierrors.NewInternalError(errors.New(unknownField + "default/ceph): .spec.x: field not declared in schema")), true},
		{"the client is not known", apierrors.NewUnauthorized("who are you"), false},
	}
	for _, tt := range tests {
		if got := isRefusal(explain(object{}, tt.err)); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}
