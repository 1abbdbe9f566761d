// Package storage tests storage systems in a real Kubernetes: the operator, the agents, and daemons
// as pods.
package storage

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	core "k8s.io/api/core/v1"

	"github.com/holdfast-storage/holdfast/test/home"
	"github.com/holdfast-storage/holdfast/test/hosts"
	"github.com/holdfast-storage/holdfast/test/kube"
)

func TestMain(m *testing.M) { hosts.MaybeInit(); os.Exit(m.Run()) }

// bed is a cluster with Holdfast.
type bed struct {
	*kube.Cluster

	t    *testing.T
	last time.Time
}

func newBed(t *testing.T, disks int) *bed {
	t.Helper()
	return newBedOf(t, kube.Options{Nodes: 3, Disks: disks})
}

func newBedOf(t *testing.T, o kube.Options) *bed {
	t.Helper()
	b := &bed{t: t, last: time.Now()}
	b.Cluster = kube.New(t, o)
	b.step("three nodes are Ready")
	b.Install(t)
	b.step("three hosts are connected")
	return b
}

// step logs how long a step took.
func (b *bed) step(what string) {
	b.t.Helper()
	b.t.Logf("%5.1f s: %s", time.Since(b.last).Seconds(), what)
	b.last = time.Now()
}

func (b *bed) await(what string, check func(ctx context.Context) error) {
	b.t.Helper()
	home.AwaitFor(b.t, 3*time.Minute, what, func() error {
		ctx, cancel := context.WithTimeout(b.t.Context(), 20*time.Second)
		defer cancel()
		return check(ctx)
	})
}

// awaitStatus waits until a cluster is ONLINE, all its daemons run, and it misses nothing.
func (b *bed) awaitStatus(namespace string) {
	b.t.Helper()
	b.await(namespace+" to be ONLINE", func(ctx context.Context) error {
		out, err := b.Try(ctx, "", "-n", namespace, "get", "storagestatus", "-o",
			`jsonpath={range .items[*]}{.status.status}:{.status.health}:{.status.message}{end}`)
		if err == nil && !strings.HasPrefix(out, "ONLINE:") {
			err = errors.New(out)
		}
		return err
	})
}

// lives are the containers that run, by pod: another one has another id.
func (b *bed) lives(namespace string) map[string]string {
	b.t.Helper()
	all := map[string]string{}
	for name, pod := range b.Pods(b.t, namespace) {
		all[name] = container(&pod)
	}
	return all
}

func container(pod *core.Pod) string {
	for _, c := range pod.Status.ContainerStatuses {
		if c.State.Running != nil {
			return c.ContainerID
		}
	}
	return ""
}

// awaitReady waits until so many pods of a namespace are Ready.
func (b *bed) awaitReady(namespace string, count int) {
	b.t.Helper()
	b.AwaitPods(b.t, namespace, "app.kubernetes.io/managed-by=holdfast", count)
}

// operator runs a command in the operator's pod; it must not fail.
func (b *bed) operator(args ...string) string {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), time.Minute)
	defer cancel()
	out, err := b.Operator(ctx, args...)
	if err != nil {
		b.t.Fatal(err)
	}
	return out
}

// left are what nodes have of daemons.
func (b *bed) left() (all []string) {
	b.t.Helper()
	for _, n := range b.Nodes() {
		out := n.Run(b.t, b.t.Context(), "find", "/var/lib/holdfast/agent/daemons",
			"/var/lib/holdfast/agent/pods", "/run/holdfast", "-mindepth", "1")
		if out = strings.TrimSpace(out); out != "" {
			all = append(all, fmt.Sprintf("%s: %s", n.Name, out))
		}
	}
	return all
}
