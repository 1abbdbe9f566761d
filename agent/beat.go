package agent

import (
	"context"
	"time"

	coordv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// SystemNamespace is where the Leases of hosts lie.
	SystemNamespace = "holdfast-system"
	// BeatInterval is how often an agent renews its Lease.
	BeatInterval = 5 * time.Second
)

// LeaseName names the Lease by which the agent of a host shows that it is alive.
func LeaseName(host string) string { return "host-" + host }

// beat renews the host's Lease until ctx ends.
func (a *agent) beat(ctx context.Context) {
	tick := time.NewTicker(BeatInterval)
	defer tick.Stop()
	failing := false
	for {
		err := a.renew(ctx)
		// Once is enough in the log: the server is away, or it is back.
		if failing != (err != nil) && ctx.Err() == nil {
			failing = err != nil
			if failing {
				a.log.Warn("no heartbeat reaches the server; daemons go on", "error", lockedOut(err))
			} else {
				a.log.Info("the server receives heartbeats")
			}
		}
		a.noticeClock()
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// renew writes the Lease without reading it first: nobody else writes it.
func (a *agent) renew(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, BeatInterval)
	defer cancel()
	seconds := int32(3 * BeatInterval / time.Second)
	now := metav1.NowMicro()
	bare := &coordv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: SystemNamespace, Name: LeaseName(a.Name)}}
	full := bare.DeepCopy()
	full.Spec = coordv1.LeaseSpec{HolderIdentity: &a.Name, LeaseDurationSeconds: &seconds, RenewTime: &now}
	err := a.client.Patch(ctx, full.DeepCopy(), client.MergeFrom(bare))
	if apierrors.IsNotFound(err) {
		return a.client.Create(ctx, full)
	}
	return err
}

// noticeClock has the host reported when its clock comes to differ from the server's, or to agree again.
func (a *agent) noticeClock() {
	cond, ok := a.clock.condition()
	if ok && a.told.clock.Swap(cond.Message) != cond.Message {
		a.askReport()
	}
}
