package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/test/home"
	"github.com/holdfast-storage/holdfast/test/hosts"
	"github.com/holdfast-storage/holdfast/test/linear"
	"github.com/holdfast-storage/holdfast/test/loopback"
)

// TestLinear has clients of three servers, each with a member of etcd of its own, write and read over all of them, while the server that
// leads is stopped and goes on, is cut off from the others and found again, and is killed and started. Whatever they were answered, by
// whichever server, fits one register, one lock, and the rules of actions; and the same without a fence, or with looks into the
// cache of a server, does not.
func TestLinear(t *testing.T) {
	begin(t)
	lab := hosts.New(t, hosts.Options{Count: 3})
	b := &bed{t, home.Start(t, lab, binary)}
	w := b.ways(loopback.Masters)
	fenced, plain, lock := newRegister(t, w, "fenced", true), newRegister(t, w, "plain", false), newLock(t, w, "linear-lock")
	deeds := newDeeds(t, b.ways(loopback.Admins))

	ctx, cancel := context.WithCancel(t.Context())
	var clients sync.WaitGroup
	for _, play := range []func(context.Context, *sync.WaitGroup){fenced.play, plain.play, lock.play, deeds.play} {
		play(ctx, &clients)
	}
	b.allFollow()
	began := time.Now()
	b.disturb(w)
	cancel()
	clients.Wait()
	deeds.end()
	t.Logf("the clients were at work for %.0f s", time.Since(began).Seconds())
	for _, one := range slices.Concat(w, deeds.ways) {
		if n := one.answers.Load(); n < 20 {
			t.Errorf("only %d answers came over the server of %s: too little happened", n, one.server)
		}
	}

	fits(t, "the register", linear.Heard(fenced.r), linear.Register{}, linear.StepRegister, nil, 100)
	fits(t, "the lock", lock.r, linear.Lock{}, linear.StepLock, nil, 100)
	fits(t, "the actions", deeds.r, linear.Action{Approval: api.ApprovalRequired, Want: api.WantDone}, linear.StepWatched, linear.ActionOf, 100)
	fits(t, "what the leaders wrote", deeds.versions, 0, linear.StepVersion, linear.VersionOf, 100)
	broken(t, "writes without a fence", plain.r)
	broken(t, "looks into a cache", fenced.r.With(fenced.cached))
}

// broken fails the test if the history of a register can be explained.
func broken(t *testing.T, what string, r *linear.Recording) {
	t.Helper()
	began := time.Now()
	if err := linear.Check(linear.Heard(r), linear.Register{}, linear.StepRegister, nil); err == nil || errors.Is(err, linear.ErrUndecided) {
		t.Errorf("%s are not found out, the test would see nothing: %v", what, err)
	}
	t.Logf("%s are found out after %.1f s", what, time.Since(began).Seconds())
}

// fits fails the test unless a history with so many operations at least can be explained.
func fits[S comparable](t *testing.T, what string, r *linear.Recording, initial S, step linear.Step[S], object func(any) string, least int) {
	t.Helper()
	began := time.Now()
	if err := linear.Check(r, initial, step, object); err != nil {
		t.Errorf("%s: %v", what, err)
	}
	counts := map[string]int{}
	r.Count(func(in, out any) bool {
		switch out.(type) {
		case linear.Done, linear.Refused, linear.Overtaken, linear.Denied, linear.Unknown:
			counts[fmt.Sprintf("%T %T", in, out)]++
		default:
			counts[fmt.Sprintf("%T", in)]++
		}
		return true
	})
	t.Logf("%s: %v, looked at for %.1f s", what, counts, time.Since(began).Seconds())
	if n := r.Count(linear.Any); n < least {
		t.Errorf("%s: only %d operations: too little happened", what, n)
	}
}

// allFollow waits until each server leads, or has looked who does, of which its log tells. They have just joined, and one gives the lease its
// whole time from its first look: one that is still starting leads late for a reason of its own.
func (b *bed) allFollow() {
	b.Helper()
	for n := range b.Lab.Hosts() {
		b.await(fmt.Sprintf("server %d to follow", n+1), func() error {
			log, err := os.ReadFile(b.Server(n + 1).Log)
			if err == nil && !bytes.Contains(log, []byte("a leader was elected")) && !bytes.Contains(log, []byte("this server leads")) {
				err = errors.New("it has not looked yet")
			}
			return err
		})
	}
}

// disturb has three servers that lead be in trouble, one after the other, and waits each time until another one leads.
func (b *bed) disturb(w ways) {
	for _, trouble := range []struct {
		what string
		do   func(leader int) (end func())
	}{
		{"stopped", func(leader int) func() {
			b.Server(leader).Signal(b, syscall.SIGSTOP)
			return func() { b.Server(leader).Signal(b, syscall.SIGCONT) }
		}},
		{"cut off from the others", func(leader int) func() {
			all := b.Lab.Hosts()
			return b.Lab.Partition(b, []*hosts.Host{all[leader-1]}, []*hosts.Host{all[leader%3], all[(leader+1)%3]})
		}},
		{"killed", func(leader int) func() {
			b.Server(leader).Kill(b)
			return func() { b.StartServer(b, leader) }
		}},
	} {
		leader := b.leaderBut(w, 0)
		began := time.Now()
		end := trouble.do(leader)
		next := b.leaderBut(w, leader)
		led := time.Since(began)
		end()
		b.await("the server that was "+trouble.what, func() error {
			_, err := b.leaderOver(w, leader)
			return err
		})
		b.Logf("the leader, server %d, was %s: server %d leads after %.1f s, and after %.1f s all is well", leader, trouble.what, next, led.Seconds(), time.Since(began).Seconds())
	}
}

// leaderBut waits until another server leads than one, by the word of one of the others.
func (b *bed) leaderBut(w ways, not int) (leader int) {
	b.Helper()
	b.await("a leader", func() (err error) {
		if leader, err = b.leaderOver(w, not%3+1); err == nil && leader == not {
			err = errors.New("the same server leads")
		}
		return err
	})
	return leader
}
