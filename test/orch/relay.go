package orch

import (
	"context"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/holdfast-storage/holdfast/agent/relay"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// Relay has the relay of an agent pass the calls of a mgr on, until end is called. It has the
// certificate of host h1, where the cluster has a mgr; the mgr of the release stands for that one.
func (h *Home) Relay(r *Release) (end func()) {
	mgr := &api.Daemon{ObjectMeta: metav1.ObjectMeta{Namespace: Name.Namespace, Name: "ceph-mgr-x"}}
	mgr.Spec.Cluster, mgr.Spec.Parameters = Name.Name, map[string]string{api.ParameterOrch: "born"}
	relays := relay.Relay{
		REST: h.server.AgentConfig(), Log: h.log, Daemons: func() []*api.Daemon { return []*api.Daemon{mgr} },
		RunDir: func(types.NamespacedName) string { return r.RunDir },
	}
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { relays.Run(ctx) })
	end = sync.OnceFunc(func() { stop(); running.Wait() })
	h.t.Cleanup(end)
	return end
}
