package storage

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-storage/holdfast/test/tier"
)

const (
	// allow is what a person is told to run where a namespace forbids the pods of daemons.
	allow = "kubectl label namespace storage pod-security.kubernetes.io/enforce=privileged --overwrite"
	// away is how long the API server is away: longer than the operator's term and the agents'
	// patience.
	away = time.Minute
)

// TestBadInput gives Ceph in pods what people and platforms do wrong, one after the other: each is
// said where people look, with what to do, and nothing is half made; when it is mended the cluster
// goes on by itself. No daemon is restarted for any of it.
func TestBadInput(t *testing.T) {
	tier.Full(t)
	b := newBed(t, 1)
	b.Node(2).Run(t, t.Context(), "hostname", "elsewhere")
	b.forbidden()
	b.noImage()
	b.notOurs()
	b.made()
	b.hostname()
	b.byHand()
	b.apiAway()
	b.reinstalled()
	b.wiped()
	b.Uninstall(t)
}

// says waits until all words are in what a person sees.
func (b *bed) says(words string, args ...string) {
	b.t.Helper()
	b.await(fmt.Sprintf("kubectl %s to say %q", strings.Join(args, " "), words), func(ctx context.Context) error {
		out, err := b.Try(ctx, "", args...)
		if err == nil && !strings.Contains(out, words) {
			err = errors.New(out)
		}
		return err
	})
}

// forbidden has the namespace refuse the pods of daemons: the cluster says so at once, and makes
// nothing. The namespace has a pod with the name of a daemon's.
func (b *bed) forbidden() {
	b.t.Helper()
	b.Kubectl(b.t, "create", "namespace", ns)
	b.Apply(b.t, `{apiVersion: v1, kind: Pod, metadata: {name: ceph-mgr-a}, spec: {nodeSelector: {no: node},
		containers: [{name: c, image: theirs}]}}`, "-n", ns)
	b.Kubectl(b.t, "label", "namespace", ns, "pod-security.kubernetes.io/enforce=restricted")
	b.Apply(b.t, b.ceph(), "-n", ns)
	b.says(allow, "-n", ns, "get", "storagestatus", "ceph", "-o", "wide")
	b.says(allow, "-n", "holdfast-system", "exec", "deploy/holdfast-operator", "--", "holdfast", "-n", ns, "why",
		"cluster/ceph")
	b.says("NamespaceForbidsPods", "-n", ns, "get", "storagecluster", "ceph", "-o",
		`jsonpath={.status.conditions[?(@.type=="DaemonsAllowed")].reason}`)
	b.orchestrated()
	if made := b.Kubectl(b.t, "-n", ns, "get", "daemons,secrets,pods", "-o", "name"); made != "pod/ceph-mgr-a" {
		b.t.Errorf("in a namespace that forbids pods these were made:\n%s", made)
	}
	b.step("the cluster says that its namespace forbids pods, and made nothing")
}

// noImage has the agents make pods of an image that there is not.
func (b *bed) noImage() {
	b.t.Helper()
	b.Kubectl(b.t, "-n", "holdfast-system", "set", "env", "ds/holdfast-agent",
		"HOLDFAST_IMAGE=localhost:1/holdfast:none")
	b.Kubectl(b.t, "-n", "holdfast-system", "rollout", "status", "ds/holdfast-agent", "--timeout=2m")
	b.Kubectl(b.t, strings.Fields(allow)[1:]...)
	const image = "localhost:1/holdfast:none"
	b.says(image, "-n", ns, "get", "daemons", "-o", `jsonpath={range .items[*]}{.status.message}{"\n"}{end}`)
	b.says(image, "-n", ns, "get", "storagestatus", "ceph", "-o", "jsonpath={.status.message}{.status.reasons}")
	b.step("the cluster says that the image cannot be pulled")
}

// notOurs gives the agents the right image. A pod of somebody else has had the name of a daemon's
// from the beginning.
func (b *bed) notOurs() {
	b.t.Helper()
	b.Install(b.t)
	b.Kubectl(b.t, "-n", "holdfast-system", "set", "env", "ds/holdfast-agent", "HOLDFAST_IMAGE=localhost/holdfast:dev")
	b.says("kubectl delete pod -n storage ceph-mgr-a", "-n", ns, "get", "daemon", "ceph-mgr-a", "-o",
		"jsonpath={.status.message}")
	b.Kubectl(b.t, "-n", ns, "delete", "pod", "ceph-mgr-a")
	b.step("a pod that is not the daemon's was told, and left alone")
}

// made takes the API server away while OSDs are being made.
func (b *bed) made() {
	b.t.Helper()
	b.awaitOSD()
	b.StopAPIServer(b.t)
	time.Sleep(away)
	b.StartAPIServer(b.t)
	b.awaitReady(ns, 8)
	b.awaitStatus(ns)
	b.awaitClean()
	b.checkOrphans()
	b.step("Ceph is ONLINE although the API server was away while it was made")
}

// hostname looks where CRUSH has the OSD of the node whose host name is not the Node's: below the
// name of its Host.
func (b *bed) hostname() {
	b.t.Helper()
	tree := b.operator("-n", ns, "ceph", "shell", "--", "ceph", "osd", "tree")
	if strings.Contains(tree, "elsewhere") || !strings.Contains(tree, "host h2") {
		b.t.Errorf("CRUSH goes by the host name of the machine:\n%s", tree)
	}
}

// byHand does by hand what people may not, as the administrator of the cluster.
func (b *bed) byHand() {
	b.t.Helper()
	for refusal, args := range map[string][]string{
		"the operator removes daemons":          {"-n", ns, "delete", "daemon", "ceph-mon-a"},
		"writes the spec of daemons":            {"-n", ns, "patch", "daemon", "ceph-mon-a", "--type=merge", "-p", `{"spec":{"state":"Stopped"}}`},
		"there may be no other copy of them":    {"-n", ns, "delete", "secret", "--all"},
		"delete storagecluster --all":           {"delete", "namespace", ns},
		`run "holdfast host remove h1"`:         {"delete", "host", "h1"},
		"all its objects would be deleted":      {"delete", "crd", "daemons.holdfast.io"},
		"with another one, no write of an oper": {"-n", "holdfast-system", "delete", "term", "leader"},
	} {
		ctx, cancel := context.WithTimeout(b.t.Context(), time.Minute)
		if _, err := b.Try(ctx, "", args...); err == nil || !strings.Contains(err.Error(), refusal) {
			b.t.Errorf("kubectl %s: %v, want %q", strings.Join(args, " "), err, refusal)
		}
		cancel()
	}
	b.step("what people may not do by hand is refused")
}

// apiAway takes the API server away while the cluster serves.
func (b *bed) apiAway() {
	b.t.Helper()
	lives := b.lives(ns)
	b.StopAPIServer(b.t)
	time.Sleep(away)
	b.StartAPIServer(b.t)
	b.step("the API server is back")
	b.awaitStatus(ns)
	b.orchestrated()
	b.step("the operator works")
	b.awaitReady(ns, 8)
	b.sameLives("the API server was away", lives)
	b.awaitClean()
	b.step("the API server was away, and no daemon was restarted")
}

// reinstalled deletes Holdfast while its cluster serves, and applies it again.
func (b *bed) reinstalled() {
	b.t.Helper()
	lives := b.lives(ns)
	b.Uninstall(b.t)
	b.sameLives("Holdfast deleted", lives)
	b.Install(b.t)
	b.awaitStatus(ns)
	b.orchestrated()
	b.sameLives("Holdfast installed again", lives)
	b.step("Holdfast was deleted and installed again, and no daemon was restarted")
}
