package leader

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/holdfast-storage/holdfast/action"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/internal/words"
	"github.com/holdfast-storage/holdfast/propose"
)

const (
	// answerTimeout bounds the answer to one Plan.
	answerTimeout = 45 * time.Second
	// writeTimeout bounds the reading of a Plan, and the writing of its answer.
	writeTimeout = 10 * time.Second
	// systemTimeout is how long a storage system that a person asks about is waited for: without
	// its word a plan would leave things out. systemPause is between two questions to one that does
	// not answer.
	systemTimeout, systemPause = 5 * time.Second, 200 * time.Millisecond
	// atOnce is how many Plans are answered at one time.
	atOnce = 4
	// askAgain is when a Plan that could not be answered is looked at again.
	askAgain = 5 * time.Second
	// maxMessage is how long the message in the status of a Plan may be.
	maxMessage = 2048
)

// Plans are the Plans of a home, and what their answers are made from.
type Plans interface {
	// Asked are the Plans that nobody has answered yet, the oldest first.
	Asked() []types.NamespacedName
	// Notify calls f with each change of a Plan, until ctx ends. f must not block.
	Notify(ctx context.Context, f func())
	// Get reads a Plan. The error wraps engine.ErrNotFound when it is gone.
	Get(ctx context.Context, name types.NamespacedName) (*api.Plan, error)
	// Check has the API server say what a Plan makes of its objects, with the rights of who asked
	// for it. The error wraps propose.ErrRefused where the server refuses that.
	Check(ctx context.Context, p *api.Plan) (propose.Request, error)
	// Objects reads all objects.
	Objects(ctx context.Context) (*engine.Objects, error)
	// Secrets reads the Secrets of a namespace.
	Secrets(namespace string) engine.SecretReader
	// Answer writes the status of a Plan. One that is gone is no error.
	Answer(ctx context.Context, p *api.Plan) error
}

// ProposeConfig is what Plans are answered with.
type ProposeConfig struct {
	Plans Plans
	// Drivers are the storage systems, and Kinds all kinds of actions, by name.
	Drivers []engine.Driver
	Kinds   map[string]action.Kind
	// Observe asks a storage system for its state; nil asks its driver.
	Observe func(context.Context, engine.Driver, *engine.View, engine.SecretReader) (any, error)
	// Name is that of this leader.
	Name string
	Log  *slog.Logger
}

// proposer answers Plans.
type proposer struct {
	ProposeConfig
	wake  chan struct{}
	slots chan struct{}
	work  sync.WaitGroup

	mu sync.Mutex
	// busy are the Plans that are being answered, and those that could not be, until then.
	busy map[types.NamespacedName]time.Time
	// failed are the Plans that could not be answered, with how often and why.
	failed map[types.NamespacedName]failedAnswer
}

// failedAnswer is a Plan that could not be answered.
type failedAnswer struct {
	times int
	err   error
}

// mostAnswers is how often a Plan is tried before its requester is told why there is no answer.
const mostAnswers = 3

// Propose answers Plans until ctx ends, and returns when it is at rest.
func Propose(ctx context.Context, c ProposeConfig) error {
	p := &proposer{
		ProposeConfig: c, wake: make(chan struct{}, 1), slots: make(chan struct{}, atOnce),
		busy: map[types.NamespacedName]time.Time{}, failed: map[types.NamespacedName]failedAnswer{},
	}
	defer p.work.Wait()
	c.Plans.Notify(ctx, p.signal)
	tick := time.NewTicker(askAgain)
	defer tick.Stop()
	for {
		p.answerAll(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-p.wake:
		case <-tick.C:
		}
	}
}

func (p *proposer) signal() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// answerAll begins to answer all Plans that wait, as many at one time as there are slots.
func (p *proposer) answerAll(ctx context.Context) {
	for _, name := range p.Plans.Asked() {
		if !p.take(name) {
			continue
		}
		select {
		case p.slots <- struct{}{}:
		case <-ctx.Done():
			return
		}
		p.work.Go(func() {
			defer func() { <-p.slots }()
			p.done(name, p.answerSafely(ctx, name))
		})
	}
}

// take says whether a Plan is to be answered now.
func (p *proposer) take(name types.NamespacedName) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if until, busy := p.busy[name]; busy && (until.IsZero() || time.Now().Before(until)) {
		return false
	}
	p.busy[name] = time.Time{}
	return true
}

// done notes how the answer to a Plan went. One that failed is not tried again at once, and one
// that was answered not until the cache has seen that.
func (p *proposer) done(name types.NamespacedName, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for other, until := range p.busy {
		if !until.IsZero() && time.Now().After(until) {
			delete(p.busy, other)
		}
	}
	p.busy[name] = time.Now().Add(askAgain)
	switch {
	case err == nil || errors.Is(err, engine.ErrNotFound):
		delete(p.failed, name)
	case !errors.Is(err, context.Canceled):
		p.failed[name] = failedAnswer{p.failed[name].times + 1, err}
		p.Log.Warn("cannot answer a plan; retrying", "plan", name, "error", err)
	}
}

// answerSafely turns a panic into an error: a fault in one answer ends no leader.
func (p *proposer) answerSafely(ctx context.Context, name types.NamespacedName) (err error) {
	defer func() {
		if fault := recover(); fault != nil {
			p.Log.Error("panic while answering a plan", "plan", name, "panic", fault, "stack", string(debug.Stack()))
			err = fmt.Errorf("planning failed: fault in Holdfast (see the log of the leader): %v", fault)
		}
	}()
	return p.answer(ctx, name)
}

// givenUp says why a Plan was tried often enough.
func (p *proposer) givenUp(name types.NamespacedName) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if f := p.failed[name]; f.times >= mostAnswers {
		return fmt.Errorf("the leader tried %d times: %w", f.times, f.err)
	}
	return nil
}

// answer answers one Plan. What comes of it for whoever asks stands in the Plan; an error is for
// another try.
func (p *proposer) answer(leading context.Context, name types.NamespacedName) error {
	plan, err := p.read(leading, name)
	if err != nil || plan.Status.State != "" || plan.ProposalOf() != nil {
		return err
	}
	limit := answerTimeout + propose.TimeFor(plan.Spec.Manifest)
	ctx, cancel := context.WithTimeout(leading, limit)
	defer cancel()
	now := metav1.Now()
	plan.Status = api.PlanStatus{State: api.PlanProposed, Time: &now}
	givenUp := p.givenUp(name)
	var proposal *propose.Proposal
	if err = givenUp; err == nil {
		proposal, err = p.propose(ctx, plan)
	}
	if err != nil && ctx.Err() != nil && leading.Err() == nil {
		err = propose.Refuse("the plan was not ready within %s: %w", limit, err)
	}
	switch {
	case givenUp != nil, errors.Is(err, propose.ErrRefused):
		plan.Status.State, plan.Status.Message = api.PlanFailed, words.Cut(err.Error(), maxMessage)
	case err != nil:
		return err
	default:
		plan.Status.Proposal = proposal.Answer(propose.Room - sizeOf(plan))
		plan.Status.Proposal.Leader = p.Name
	}
	write, cancel := context.WithTimeout(leading, writeTimeout)
	defer cancel()
	return p.Plans.Answer(write, plan)
}

func (p *proposer) read(ctx context.Context, name types.NamespacedName) (*api.Plan, error) {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	return p.Plans.Get(ctx, name)
}

// sizeOf is how many bytes a Plan has.
func sizeOf(plan *api.Plan) int {
	data, err := json.Marshal(plan)
	if err != nil {
		panic(err) // our own types can be written
	}
	return len(data)
}

// propose finds out what would come of a Plan. A fault in a driver is the end of that Plan alone.
func (p *proposer) propose(ctx context.Context, plan *api.Plan) (proposal *propose.Proposal, err error) {
	defer func() {
		if fault := recover(); fault != nil {
			p.Log.Error("panic while answering a plan", "plan", plan.Name, "panic", fault, "stack", string(debug.Stack()))
			err = propose.Refuse("planning failed: fault in Holdfast (see the log of the leader): %v", fault)
		}
	}()
	request, err := p.Plans.Check(ctx, plan)
	if err != nil {
		return nil, err
	}
	objects, err := p.Plans.Objects(ctx)
	if err != nil {
		return nil, err
	}
	home := propose.Home{
		Objects: objects, Drivers: p.Drivers, Kinds: p.Kinds, Secrets: p.Plans.Secrets, Now: time.Now(), Observe: p.Observe,
	}
	return propose.Make(ctx, home, request)
}

// patient asks a storage system until it answers, or for as long as a person waits. The questions
// of others, which come first, take none of that time.
func patient(ctx context.Context, o *engine.Orchestrator, view *engine.View, secrets engine.SecretReader) (any, error) {
	var end time.Time
	for {
		system, began, err := o.Look(ctx, view, secrets, systemTimeout)
		heard := *view
		heard.System = system
		if began.IsZero() || o.Driver.Unanswered(&heard) == "" {
			return system, err
		}
		if end.IsZero() {
			end = began.Add(systemTimeout)
		}
		select {
		case <-ctx.Done():
			return system, err
		case <-time.After(systemPause):
		}
		if !time.Now().Before(end) {
			return system, err
		}
	}
}
