package storage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-storage/holdfast/test/tier"
)

const agents = "ds/holdfast-agent"

// TestBadAgent gives the agents what people and policies do wrong with their DaemonSet, one after the
// other: each Host says why its agent is silent, and what to do. A cluster that is declared meanwhile
// says so, too; nothing of it is made before the agents are as they should be.
func TestBadAgent(t *testing.T) {
	tier.Full(t)
	b := newBed(t, 1)
	right := b.Kubectl(t, "-n", "holdfast-system", "get", agents, "-o", "jsonpath={.spec.template}")
	for i, wrong := range []struct{ old, now, says string }{
		{`{"mountPath":"/dev","name":"dev"},`, ``, "/dev in the agent's pod is not the node's /dev"},
		{
			`"path":"/dev","type":"Directory"`, `"path":"/var/lib/no-dev","type":"DirectoryOrCreate"`,
			"stat /dev/null: no such file or directory",
		},
		{`"path":"/var/lib/holdfast"`, `"path":"/var/lib/elsewhere"`, "mount the hostPath /var/lib/holdfast there"},
		{`"mountPropagation":"Bidirectional",`, ``, "set mountPropagation: Bidirectional"},
		{`"hostPID":true`, `"hostPID":false`, "set hostPID of the pod"},
		{`"path":"/dev","type":"Directory"`, `"path":"/no/dev","type":"Directory"`, "waits for a mount (see 'kubectl"},
		{`"image":"localhost/holdfast:dev"`, `"image":"localhost:1/holdfast:none"`, "localhost:1/holdfast:none"},
		{`"kubernetes.io/os":"linux"`, `"no":"node"`, "has no pod of the DaemonSet holdfast-agent"},
	} {
		template := strings.Replace(right, wrong.old, wrong.now, 1)
		if template == right {
			t.Fatalf("the DaemonSet has no %s", wrong.old)
		}
		b.agentsWith(template)
		b.allSay(wrong.says)
		b.step("all hosts say " + wrong.says)
		if i == 0 {
			b.declaredInVain(wrong.says)
		}
	}
	if made := b.Kubectl(t, "-n", ns, "get", "daemons,secrets,pods", "-o", "name"); made != "" {
		t.Errorf("without an agent that is heard these were made:\n%s", made)
	}
	b.agentsWith(right)
	b.awaitReady(ns, 8)
	b.step("the agents are right, and all daemons run")
	if said := b.hosts(`{.status.conditions[?(@.type=="AgentPod")].message}`); strings.TrimSpace(said) != "" {
		t.Errorf("hosts that are heard still say:\n%s", said)
	}
}

// agentsWith gives the agents another template of their pods, all of them at once.
func (b *bed) agentsWith(template string) {
	b.t.Helper()
	b.Kubectl(b.t, "-n", "holdfast-system", "patch", agents, "--type=json", "-p",
		`[{"op":"replace","path":"/spec/template","value":`+template+`}]`)
	b.Kubectl(b.t, "-n", "holdfast-system", "delete", "pods", "-l", "app.kubernetes.io/name=holdfast-agent")
}

// hosts is something of each Host, in lines.
func (b *bed) hosts(path string) string {
	b.t.Helper()
	return b.Kubectl(b.t, "get", "hosts", "-o", "jsonpath={range .items[*]}"+path+"{\"\\n\"}{end}")
}

// allSay waits until the condition Ready of each Host has these words.
func (b *bed) allSay(words string) {
	b.t.Helper()
	b.await(fmt.Sprintf("all hosts to say %q", words), func(context.Context) error {
		said := b.hosts(`{.status.conditions[?(@.type=="Ready")].message}`)
		for line := range strings.Lines(said + "\n") {
			if !strings.Contains(line, words) {
				return errors.New(said)
			}
		}
		return nil
	})
}

// declaredInVain declares a cluster while all agents fail: people who ask why are told.
func (b *bed) declaredInVain(words string) {
	b.t.Helper()
	b.Kubectl(b.t, "create", "namespace", ns)
	b.Apply(b.t, b.ceph(), "-n", ns)
	b.says("disconnected", "-n", ns, "get", "storagestatus", "ceph", "-o", "jsonpath={.status.message}{.status.reasons}")
	for _, about := range []string{"why host/h1", "why node/ceph-h1", "why cluster/ceph", "doctor"} {
		ctx, cancel := context.WithTimeout(b.t.Context(), time.Minute)
		out, err := b.Operator(ctx, append([]string{"-n", ns}, strings.Fields(about)...)...)
		cancel()
		if failed := err != nil; failed != (about == "doctor") {
			b.t.Errorf("holdfast %s: %v", about, err)
		}
		want := map[string]string{"why cluster/ceph": "run 'holdfast why host/h1'"}[about]
		if !strings.Contains(out, cmp.Or(want, words)) {
			b.t.Errorf("holdfast %s says\n%s", about, out)
		}
	}
}
