package e2e

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	kube "sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/control"
	"github.com/holdfast-storage/holdfast/control/endpoints"
	"github.com/holdfast-storage/holdfast/control/pki"
)

// restartApproved has each action on the cluster be approved: a restart waits for an administrator, whom neither a viewer nor a host can stand in for.
func (b *bed) restartApproved() {
	const number = 4
	d := b.daemonOf(number, "ceph-osd")
	was := b.starts(d)
	b.approval(api.ApprovalRequired)
	waits, unwanted := b.restart(d), b.restart(d)
	for _, name := range []string{waits, unwanted} {
		b.await("the restart to wait for approval", b.isAction(name, api.ActionPendingApproval))
	}
	if out := b.run("action", "show", waits); !strings.Contains(out, "'holdfast action approve "+waits+"'") || !strings.Contains(out, "an administrator to approve it") {
		b.Errorf("it is shown as\n%s", out)
	}
	b.run("action", "cancel", unwanted)
	b.await("the cancel of what was not approved", b.isAction(unwanted, api.ActionCancelled))
	b.neverBegun(unwanted)
	b.refused("action approve "+unwanted, "has already ended as Cancelled")

	b.viewerRefused("action", "approve", waits)
	b.viewerRefused("action", "approve", waits, "--reject")
	b.hostRefused(number, waits)
	if a := b.actionOf(waits); a.Spec.Approval != api.ApprovalRequired || a.Status.State != api.ActionPendingApproval || !slices.Equal(b.starts(d), was) {
		b.Errorf("what nobody has approved is %+v, and the processes are %v", a, b.starts(d))
	}
	b.run("action", "approve", waits)
	b.await("the restart that was approved", b.isAction(waits, api.ActionDone))
	b.restartedOnce(waits, d, was)
	if a := b.actionOf(waits); a.Status.Approver != "holdfast:admin" {
		b.Errorf("it was approved by %q", a.Status.Approver)
	}
	b.refused("action approve "+waits, "is already approved, and is Done")
	b.approval(api.ApprovalGranted)
}

// approval says, as an administrator does with kubectl, whether what is done to the cluster has to be approved.
func (b *bed) approval(policy api.Approval) {
	b.Helper()
	b.Lab.Host(1).Run(b, context.Background(), kubectl, "--kubeconfig", control.AdminKubeconfig(dataDir), "patch", "storagecluster", "ceph",
		"--type", "merge", "-p", `{"spec":{"approval":"`+string(policy)+`"}}`)
}

// viewerRefused runs a command with the certificate of a viewer, who is told whom to ask.
func (b *bed) viewerRefused(args ...string) {
	b.Helper()
	h := b.Lab.Host(1)
	authority, err := pki.OpenAuthority(h.Path(filepath.Join(dataDir, "pki")))
	if err != nil {
		b.Fatal(err)
	}
	pair, err := authority.NewPair(pki.Leaf{User: "holdfast:vi", Groups: []string{"holdfast:viewers"}}, time.Now())
	if err != nil {
		b.Fatal(err)
	}
	const file = "/var/lib/viewer.kubeconfig"
	if err := pki.WriteKubeconfig(h.Path(file), "https://"+h.IP+":7440", endpoints.ServerName, authority.CertPEM(), pair); err != nil {
		b.Fatal(err)
	}
	out := b.holdfast(3, append([]string{"--kubeconfig", file}, args...)...)
	if !strings.Contains(out, "holdfast:vi") || !strings.Contains(out, "ask an administrator") {
		b.Errorf("holdfast %v by a viewer says\n%s", args, out)
	}
}

// hostRefused has the certificate of a host, in the hands of somebody else, approve and cancel an action on that very host.
func (b *bed) hostRefused(number int, name string) {
	b.Helper()
	servers, err := endpoints.Open(b.Lab.Host(number).Path(control.HostDir(dataDir)))
	if err != nil {
		b.Fatal(err)
	}
	c, err := dial(servers.Config())
	if err != nil {
		b.Fatal(err)
	}
	a := b.actionOf(name)
	for _, patch := range []string{`{"spec":{"approval":"Granted"}}`, `{"spec":{"approval":"Rejected"}}`, `{"spec":{"want":"Cancelled"}}`} {
		ctx, cancel := context.WithTimeout(b.Context(), limit)
		err := c.Patch(ctx, a.DeepCopy(), kube.RawPatch(types.MergePatchType, []byte(patch)))
		cancel()
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "ask an administrator") {
			b.Errorf("%s by host %s: %v", patch, b.Lab.Host(number).Name, err)
		}
	}
}
