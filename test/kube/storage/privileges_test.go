package storage

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/holdfast-storage/holdfast/test/kube"
)

// confined is what the kernel says of the process of a daemon that has some capabilities of root, a
// mask, and no way to more.
const confined = "CapPrm: %[1]s CapEff: %[1]s CapBnd: %[1]s NoNewPrivs: 1 Seccomp: 2"

const (
	noCapability   = "0000000000000000"
	netBindService = "0000000000000400"
)

// privileges compares what the process of each daemon may do with the table in
// docs/reference/pods.md. masks are the capabilities of types that have some.
func (b *bed) privileges(masks map[string]string) {
	b.t.Helper()
	for name, pod := range b.Pods(b.t, ns) {
		kind := pod.Labels["holdfast.io/type"]
		if kind == "ceph-osd" {
			if may := pod.Spec.Containers[0].SecurityContext.Privileged; may == nil || !*may {
				b.t.Errorf("%s is not privileged", name)
			}
			continue
		}
		want := fmt.Sprintf(confined, cmp.Or(masks[kind], noCapability))
		if may := b.may(name); may != want {
			b.t.Errorf("the kernel says of %s %q, want %q", name, may, want)
		}
	}
}

func (b *bed) may(daemon string) string {
	b.t.Helper()
	words := strings.Fields(b.field("daemon/"+daemon, ".spec.host} {.status.pid"))
	if len(words) != 2 {
		b.t.Fatalf("daemon %s runs at %q", daemon, words)
	}
	out := b.node(words[0]).Run(b.t, b.t.Context(), "grep", "-E", "^(CapPrm|CapEff|CapBnd|NoNewPrivs|Seccomp):",
		"/proc/"+words[1]+"/status")
	return strings.Join(strings.Fields(out), " ")
}

func (b *bed) node(name string) *kube.Node {
	b.t.Helper()
	i := slices.IndexFunc(b.Nodes(), func(n *kube.Node) bool { return n.Name == name })
	if i < 0 {
		b.t.Fatalf("there is no node %q", name)
	}
	return b.Nodes()[i]
}
