package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-storage/holdfast/driver/ceph/rados"
	"github.com/holdfast-storage/holdfast/test/hosts"
)

// The milestones of a bring-up, in the order in which they usually come. An observer sees them from outside, in the same
// way on both sides.
const (
	monsStarted  = "first mon process"
	mgrsStarted  = "all mgr processes"
	osdsMade     = "OSDs made"
	osdsStarted  = "all OSD processes"
	quorate      = "all mons in quorum"
	osdsKnown    = "OSDs known to Ceph"
	osdsUp       = "OSDs up and in"
	mgrAvailable = "mgr available"
	mgrsThere    = "all mgrs there"
	pgsClean     = "PGs reported and clean"
	cephReady    = "all of it and HEALTH_OK"
	done         = "command ended"
)

var milestones = []string{
	monsStarted, osdsMade, mgrsStarted, osdsStarted, quorate, osdsKnown, osdsUp, mgrAvailable, mgrsThere, pgsClean, cephReady, done,
}

// unsettled is how long a new process may still become another program.
const unsettled = time.Second

// answerTimeout bounds one question to the mons, lastAnswerTimeout the last one.
const (
	answerTimeout     = 10 * time.Second
	lastAnswerTimeout = time.Second
)

// observer watches a bring-up: the hosts' processes in /proc, and Ceph's own status.
type observer struct {
	start time.Time
	// namespaces are the PID namespaces of the hosts.
	namespaces []string
	// young are the processes that were first seen a short time ago, old all others.
	young map[int]time.Time
	old   map[int]bool
	// daemons counts the daemons of Ceph that were seen, making the OSDs that are made, by their names.
	daemons map[string]bool
	making  map[int]string
	made    map[string]bool

	asking sync.WaitGroup
	dialed bool

	mu   sync.Mutex
	seen map[string]time.Duration
	err  error
}

// observe watches until ctx ends. The function that it returns waits for that, and returns what was seen when.
func observe(ctx context.Context, lab *hosts.Lab) func() (map[string]time.Duration, error) {
	o := &observer{
		start: time.Now(), young: map[int]time.Time{}, old: map[int]bool{}, daemons: map[string]bool{}, making: map[int]string{},
		made: map[string]bool{}, seen: map[string]time.Duration{},
	}
	for _, h := range lab.Hosts() {
		o.namespaces = append(o.namespaces, namespaceOf(h.PID()))
	}
	all, err := pids()
	o.note(err)
	for _, pid := range all {
		o.old[pid] = true
	}
	over := make(chan struct{})
	go func() {
		defer close(over)
		o.watch(ctx)
	}()
	return func() (map[string]time.Duration, error) {
		<-over
		o.asking.Wait()
		return o.seen, o.err
	}
}

func (o *observer) note(err error) {
	if err != nil {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.err = errors.Join(o.err, err)
	}
}

// reached notes a milestone when it is seen for the first time.
func (o *observer) reached(milestone string, yes bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, known := o.seen[milestone]; yes && !known {
		o.seen[milestone] = time.Since(o.start)
	}
}

func (o *observer) watch(ctx context.Context) {
	ticker := time.NewTicker(poll)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		all, err := pids()
		if err != nil {
			o.note(err)
			return
		}
		for _, pid := range all {
			if !o.old[pid] {
				o.look(ctx, pid)
			}
		}
		for pid, id := range o.making {
			if !slices.Contains(all, pid) {
				delete(o.making, pid)
				o.made[id] = true
			}
		}
		o.reached(osdsMade, len(o.made) == osds)
	}
}

// look finds out what a process is that has come while the observer watches.
func (o *observer) look(ctx context.Context, pid int) {
	since, known := o.young[pid]
	if !known {
		since = time.Now()
		o.young[pid] = since
	}
	p := readProcess(pid)
	if p.option("-i") == "" || !slices.Contains([]string{"ceph-mon", "ceph-mgr", "ceph-osd"}, p.program()) {
		if time.Since(since) > unsettled {
			o.settle(pid)
		}
		return
	}
	if !slices.Contains(o.namespaces, namespaceOf(pid)) {
		o.settle(pid)
		return
	}
	o.recognize(ctx, p)
}

func (o *observer) settle(pid int) {
	delete(o.young, pid)
	o.old[pid] = true
}

// recognize counts a program of Ceph on one of the hosts.
func (o *observer) recognize(ctx context.Context, p process) {
	if !p.daemon() {
		if p.program() == "ceph-osd" {
			o.making[p.pid] = p.option("-i")
		}
		return // it may become the daemon
	}
	o.settle(p.pid)
	if id, ok := o.making[p.pid]; ok {
		delete(o.making, p.pid)
		o.made[id] = true
	}
	o.daemons[p.program()+" "+p.option("-i")] = true
	count := map[string]int{}
	for name := range o.daemons {
		count[name[:len("ceph-xxx")]]++
	}
	o.reached(monsStarted, count["ceph-mon"] > 0)
	o.reached(mgrsStarted, count["ceph-mgr"] == mgrs)
	o.reached(osdsStarted, count["ceph-osd"] == osds)
	if p.program() == "ceph-mon" && !o.dialed {
		o.dial(ctx, p)
	}
}

// dial connects to the cluster of the first mon.
func (o *observer) dial(ctx context.Context, mon process) {
	cfg, err := readConfig(fmt.Sprintf("/proc/%d/root", mon.pid), mon.option("-c"))
	if err != nil {
		o.note(err)
		return
	}
	o.dialed = true
	o.asking.Go(func() {
		client := rados.Dial(cfg)
		defer client.Close()
		o.note(o.ask(ctx, &asker{client: client}))
	})
}

// ask asks Ceph again and again how far it is, and a last time when ctx has ended: the command under watch may have been
// quicker to see that all is well.
func (o *observer) ask(ctx context.Context, a *asker) error {
	ticker := time.NewTicker(poll)
	defer ticker.Stop()
	for {
		if err := o.askOnce(ctx, a, answerTimeout); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return o.askOnce(context.WithoutCancel(ctx), a, lastAnswerTimeout)
		case <-ticker.C:
		}
	}
}

func (o *observer) askOnce(ctx context.Context, a *asker, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	s, err := a.ask(ctx)
	if s == nil || err != nil {
		return err
	}
	o.reached(quorate, s.quorate())
	o.reached(osdsKnown, s.known())
	o.reached(osdsUp, s.up())
	o.reached(mgrAvailable, s.mgrAvailable())
	o.reached(mgrsThere, s.mgrsThere())
	o.reached(pgsClean, s.clean() && s.up())
	o.reached(cephReady, s.ready())
	return nil
}
