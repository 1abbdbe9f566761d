package storage

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
)

const waitingClaim = `
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: waiting}
spec:
  accessModes: [ReadWriteOnce]
  storageClassName: ` + class + `
  resources: {requests: {storage: 64Mi}}
`

// waited has a claim be made while two of three mons are cut off: it waits, its events have the
// words of the StorageStatus, and it is bound when the quorum is back.
func (b *bed) waited() {
	b.t.Helper()
	b.mons("-I")
	b.await("Ceph to be OFFLINE", func(ctx context.Context) error {
		out, err := b.Try(ctx, "", "-n", ns, "get", "storagestatus", "ceph", "-o", "jsonpath={.status.status}")
		if err == nil && out != "OFFLINE" {
			err = errors.New(out)
		}
		return err
	})
	b.Apply(b.t, waitingClaim, "-n", claims)
	var said []string // what the StorageStatus says may change
	b.await("an event of the claim", func(ctx context.Context) error {
		words, err := b.Try(ctx, "", "-n", ns, "get", "storagestatus", "ceph", "-o", "jsonpath={.status.message}")
		if err != nil {
			return err
		}
		said = append(said, words)
		out, err := b.Try(ctx, "", "-n", claims, "get", "events", "--field-selector=involvedObject.name=waiting", "-o",
			"jsonpath={.items[*].message}")
		isSaid := func(words string) bool { return strings.Contains(out, "OFFLINE: "+words) }
		if err == nil && !slices.ContainsFunc(said, isSaid) {
			err = fmt.Errorf("%q has none of %q", out, said)
		}
		return err
	})
	if phase := b.claim("waiting", "{.status.phase}"); phase != "Pending" {
		b.t.Errorf("the claim is %s while Ceph is OFFLINE", phase)
	}
	b.mons("-D")
	b.awaitStatus(ns)
	b.await("the claim to be bound", func(context.Context) error {
		if phase := b.claim("waiting", "{.status.phase}"); phase != "Bound" {
			return errors.New(phase)
		}
		return nil
	})
}

// mons adds or deletes the rules that cut the mons of two nodes off.
func (b *bed) mons(do string) {
	b.t.Helper()
	for _, n := range b.Nodes()[:2] {
		for _, rule := range []string{
			"INPUT -p tcp --dport", "INPUT -p tcp --sport", "OUTPUT -p tcp --dport", "OUTPUT -p tcp --sport",
		} {
			for _, port := range []string{"3300", "6789"} {
				args := append([]string{do}, strings.Fields(rule)...)
				n.Run(b.t, b.t.Context(), "iptables", append(args, port, "-j", "DROP")...)
			}
		}
	}
}

// claim is a field of a claim.
func (b *bed) claim(name, path string) string {
	b.t.Helper()
	return strings.TrimSpace(b.Kubectl(b.t, "-n", claims, "get", "pvc", name, "-o", "jsonpath="+path))
}
