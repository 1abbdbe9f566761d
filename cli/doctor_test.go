package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-storage/holdfast/cli/doctor"
	"github.com/holdfast-storage/holdfast/control"
)

// TestDoctor_alone: on a machine without a server and a way to one, it says so, checks what it can, and fails.
func TestDoctor_alone(t *testing.T) {
	t.Setenv("KUBECONFIG", "")
	t.Setenv("HOLDFAST_KUBECONFIG", "")
	var out, problems bytes.Buffer
	dir := t.TempDir()
	if code := run(t.Context(), []string{"doctor", "--data-dir", dir}, streams{out: &out, err: &problems}); code != exitFailed {
		t.Errorf("exit code %d, want %d", code, exitFailed)
	}
	for _, want := range []string{"FAIL  api           the API cannot be reached", "→ check that the servers run", "SKIP  quorum", "OK    disk"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in:\n%s", want, out.String())
		}
	}
	out.Reset()
	run(t.Context(), []string{"doctor", "--data-dir", dir, "-o", "json"}, streams{out: &out, err: &problems})
	var findings []doctor.Finding
	if err := json.Unmarshal(out.Bytes(), &findings); err != nil || len(findings) < 10 || findings[0].Level != doctor.Fail {
		t.Errorf("got %v, %v", findings, err)
	}
	if code := run(t.Context(), []string{"doctor", "-o", "yaml"}, streams{out: &out, err: &problems}); code != exitUsage {
		t.Errorf("exit code %d for an unknown output", code)
	}
}

// TestAgentAlone: where an agent runs alone, nobody is told to make a server.
func TestAgentAlone(t *testing.T) {
	t.Setenv("KUBECONFIG", "")
	t.Setenv("HOLDFAST_KUBECONFIG", "")
	dir := t.TempDir()
	servers := filepath.Join(control.HostDir(dir), "servers")
	if err := errors.Join(os.MkdirAll(filepath.Dir(servers), 0o700), os.WriteFile(servers, []byte("127.0.0.1:1\n127.0.0.1:2\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{"host list", "doctor"} {
		var out bytes.Buffer
		code := run(t.Context(), append(strings.Fields(command), "--data-dir", dir), streams{out: &out, err: &out})
		text := out.String()
		if code != exitFailed || !strings.Contains(text, "run the command on a server (127.0.0.1:1, 127.0.0.1:2)") || strings.Contains(text, "--init") {
			t.Errorf("%s: %d, %s", command, code, text)
		}
	}
}

// TestDoctor_token: what the doctor says takes back a token that is open.
func TestDoctor_token(t *testing.T) {
	t.Parallel()
	p := newPerson(t, "holdfast-system", "holdfast:tokens")
	p.must(t, exitOK, "", []string{"token", "create", "--role", "server"})
	_, out := p.do("", "doctor", "--data-dir", t.TempDir())
	_, command, found := strings.Cut(out, "delete it: holdfast ")
	if !found {
		t.Fatalf("an open token is not told of:\n%s", out)
	}
	command, _, _ = strings.Cut(command, "\n")
	p.must(t, exitOK, "", strings.Fields(command))
	if _, out = p.do("", "doctor", "--data-dir", t.TempDir()); strings.Contains(out, command) {
		t.Errorf("a token was taken back by '%s', and is told of:\n%s", command, out)
	}
}
