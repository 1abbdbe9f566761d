package kube

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"

	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	audit "k8s.io/apiserver/pkg/apis/audit/v1"

	"github.com/holdfast-storage/holdfast/test/hosts"
)

// Audit is the audit log of a kube-apiserver: who wrote what, and how the API server answered.
type Audit struct{ dir string }

// auditPolicy logs the answer to each write, with its user and without its content.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted]
rules:
- {level: Metadata, verbs: [create, update, patch, delete, deletecollection]}
- {level: None}
`

// NewAudit makes the directory of an audit log, which is removed when the test ends.
func NewAudit(t hosts.T) *Audit {
	t.Helper()
	dir, err := os.MkdirTemp("", "holdfast-kube-audit-")
	if err != nil {
		t.Fatalf("kube: while making a directory: %v", err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) }) // what is left is found by its name
	a := &Audit{dir: dir}
	if err := os.WriteFile(a.path("policy.yaml"), []byte(auditPolicy), 0o600); err != nil {
		t.Fatalf("kube: while writing the policy of the audit log: %v", err)
	}
	return a
}

func (a *Audit) path(name string) string { return filepath.Join(a.dir, name) }

// Flags have kube-apiserver keep the log, see ControlWith. It logs each answer
// before it sends it.
func (a *Audit) Flags() map[string][]string {
	return map[string][]string{"kube-apiserver": {
		"--audit-policy-file=" + a.path("policy.yaml"), "--audit-log-path=" + a.path("log"),
		"--audit-log-mode=blocking",
	}}
}

// Writes are the writes that the API server has answered, in the order of the answers. Dry runs are
// none.
func (a *Audit) Writes(t hosts.T) []Write {
	t.Helper()
	return slices.DeleteFunc(a.Answers(t), Write.DryRun)
}

// Answers are Writes with the dry runs.
func (a *Audit) Answers(t hosts.T) (all []Write) {
	t.Helper()
	text, err := os.ReadFile(a.path("log"))
	if err != nil {
		t.Fatalf("kube: while reading the audit log: %v", err)
	}
	for line := range strings.Lines(string(text)) {
		if !strings.HasSuffix(line, "\n") {
			break // it is being written
		}
		var w Write
		if err := json.Unmarshal([]byte(line), &w.Event); err != nil {
			t.Fatalf("kube: while reading the audit log: %v", err)
		}
		all = append(all, w)
	}
	return all
}

// Write is a write that the API server has answered.
type Write struct{ audit.Event }

// DryRun says whether the write was to change nothing.
func (w Write) DryRun() bool { return strings.Contains(w.RequestURI, "dryRun=") }

// Done says whether the write was accepted.
func (w Write) Done() bool { return w.code() >= 200 && w.code() < 300 }

// Refusal is why the write was refused; empty for one that was accepted.
func (w Write) Refusal() string {
	if w.Done() || w.ResponseStatus == nil {
		return ""
	}
	return w.ResponseStatus.Message
}

func (w Write) code() int32 {
	if w.ResponseStatus == nil {
		return 0
	}
	return w.ResponseStatus.Code
}

// As is a value of the user that the writer acted as; empty where it acted as itself.
func (w Write) As(extra string) string {
	if w.ImpersonatedUser == nil {
		return ""
	}
	return strings.Join(w.ImpersonatedUser.Extra[extra], ",")
}

// Credential tells tokens of one account from each other.
func (w Write) Credential() string {
	return strings.Join(w.User.Extra["authentication.kubernetes.io/credential-id"], ",")
}

// What is the verb with the kind of object.
func (w Write) What() string {
	parts := []string{w.Verb}
	if o := w.ObjectRef; o != nil {
		parts = append(parts, o.Resource, o.Subresource)
	}
	return strings.Join(slices.DeleteFunc(parts, func(p string) bool { return p == "" }), " ")
}

// At is when the API server answered.
func (w Write) At() meta.MicroTime { return w.StageTimestamp }
