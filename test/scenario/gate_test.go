package scenario

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/holdfast-storage/holdfast/driver/ceph/rados"
)

// gate is what every write of a leader goes through: those to the store, and the commands by which Ceph is changed. It can
// fail one of them, or cut the leader off for good, as when its machine dies.
type gate struct {
	mu      sync.Mutex
	passed  int
	cutAt   int // after so many writes nothing passes any more; negative: never
	failAt  int // this write fails; negative: none does
	tripped bool
}

var (
	errCutOff = errors.New("cut off from everything")
	errFailed = errors.New("this one failed")
)

func newGate() *gate { return &gate{cutAt: -1, failAt: -1} }

// reset lets everything pass, and counts from zero again.
func (g *gate) reset() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.passed, g.cutAt, g.failAt, g.tripped = 0, -1, -1, false
}

// set makes the gate cut off after cutAt writes and fail the write number failAt, counted from now.
func (g *gate) set(cutAt, failAt int) {
	g.reset()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.cutAt, g.failAt = cutAt, failAt
}

// hasTripped says whether a write was kept from being done.
func (g *gate) hasTripped() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.tripped
}

// pass asks to do one write.
func (g *gate) pass() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.cutAt >= 0 && g.passed >= g.cutAt {
		g.tripped = true
		return errCutOff
	}
	g.passed++
	if g.passed-1 == g.failAt {
		g.tripped = true
		return errFailed
	}
	return nil
}

// closing says whether the write that passed last was the last one.
func (g *gate) closing() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.cutAt >= 0 && g.passed >= g.cutAt
}

// store has the form of sim.Memory.Fail.
func (g *gate) store(operation, _ string) error {
	if operation == "View" {
		return nil
	}
	return g.pass()
}

// gatedClient lets commands that change something through the gate. What fails there was carried out and its answer was
// lost, which is the harder case of the two.
type gatedClient struct {
	rados.Client
	gate *gate
}

func (c gatedClient) Mon(ctx context.Context, command any, input []byte) ([]byte, error) {
	changes, err := isChange(command)
	if err != nil || !changes {
		return c.ask(ctx, command, input, err)
	}
	failure := c.gate.pass()
	if errors.Is(failure, errCutOff) {
		return nil, fmt.Errorf("%w: %w", rados.ErrNoAnswer, failure)
	}
	out, err := c.Client.Mon(ctx, command, input)
	if failure != nil || c.gate.closing() {
		return nil, fmt.Errorf("%w: the answer was lost", rados.ErrNoAnswer)
	}
	return out, err
}

func (c gatedClient) ask(ctx context.Context, command any, input []byte, err error) ([]byte, error) {
	if err != nil {
		return nil, err
	}
	return c.Client.Mon(ctx, command, input)
}

// isChange says whether a command changes something in Ceph.
func isChange(command any) (bool, error) {
	text, err := json.Marshal(command)
	if err != nil {
		return false, err
	}
	var c struct {
		Prefix string `json:"prefix"`
	}
	err = json.Unmarshal(text, &c)
	return c.Prefix == "osd new" || c.Prefix == "auth import", err
}
