package kube

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/fence"
)

const (
	// settle is how long a new term is left to the API servers that the operator does not talk to:
	// the watch of each brings the Term to its policy.
	settle = time.Second
	// checkEvery is how often a leader tries whether the fence holds, and checkPatience how long a
	// fence may be missing that is being installed.
	checkEvery    = 30 * time.Second
	checkPatience = 45 * time.Second
	checkTimeout  = 10 * time.Second
	checkPause    = 100 * time.Millisecond
	retryAfter    = 2 * time.Second
)

// ErrUnfenced says that the API did a write that the policy holdfast-leader has to refuse.
var ErrUnfenced = errors.New("the API refuses no write of an operator that does not lead: the policies of " +
	"deploy/kubernetes/20-fence.yaml " +
	"are missing or do not work; apply them, or start the operator with --unfenced")

// ErrNoTerm says that the Term was deleted, or that somebody else wrote it: the writes of the
// operator that leads are refused then, or those of all operators accepted. It is mended by leading
// anew.
var ErrNoTerm = errors.New("the Term " + api.SystemNamespace + "/" + api.TermName + " is gone, or does not name " +
	"this operator although it leads")

// errReplaced says that another operator took the Lease before the Term was written.
var errReplaced = errors.New("another operator has taken the Lease")

// Terms makes the tokens of terms count.
type Terms struct {
	config *rest.Config
	client client.Client
	log    *slog.Logger
	// unfenced lets an operator lead where the policies are missing.
	unfenced bool
}

// NewTerms returns Terms that write with config, the operator's own. unfenced lets an operator lead
// where no policy holds the fence.
func NewTerms(config *rest.Config, unfenced bool, log *slog.Logger) (*Terms, error) {
	c, err := newClient(rest.AddUserAgent(rest.CopyConfig(config), "term"))
	return &Terms{config: config, client: c, unfenced: unfenced, log: log}, err
}

func newClient(config *rest.Config) (client.Client, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{api.AddToScheme, corev1.AddToScheme, coordinationv1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("while registering kinds: %w", err)
		}
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("while preparing the client of the API: %w", err)
	}
	return c, nil
}

// Won writes the Term of a new leader, and returns when the API takes its writes and no others. It
// fails when somebody else has the Lease by now: an operator that was paused after it won does not
// take the fence from its successor.
func (t *Terms) Won(ctx context.Context, token string) error {
	if err := t.write(ctx, token); err != nil {
		return fmt.Errorf("while writing the Term: %w", err)
	}
	if err := t.count(ctx, token); err != nil {
		return fmt.Errorf("while waiting for the Term to count: %w", err)
	}
	if err := t.check(ctx, token); err != nil {
		return err
	}
	return pause(ctx, settle)
}

// write puts token into the Term, on condition that the Lease was this operator's after the Term
// was read: a successor writes the Term after it took the Lease, so one of the two writes meets a
// conflict, and looks again.
func (t *Terms) write(ctx context.Context, token string) error {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	for {
		err := t.writeOnce(ctx, token)
		if !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) {
			return err
		}
		if cause := pause(ctx, checkPause); cause != nil {
			return errors.Join(cause, err)
		}
	}
}

func (t *Terms) writeOnce(ctx context.Context, token string) error {
	term := &api.Term{ObjectMeta: metav1.ObjectMeta{Namespace: api.SystemNamespace, Name: api.TermName}}
	err := t.client.Get(ctx, client.ObjectKeyFromObject(term), term)
	isNew := apierrors.IsNotFound(err)
	if err != nil && !isNew {
		return err
	}
	lease := &coordinationv1.Lease{}
	name := client.ObjectKey{Namespace: api.SystemNamespace, Name: api.LeaderLease}
	if err := t.client.Get(ctx, name, lease); err != nil {
		return err
	}
	if ptr.Deref(lease.Spec.HolderIdentity, "") != token {
		return errReplaced
	}
	if term.Spec.Leader = token; isNew {
		return t.client.Create(ctx, term)
	}
	return t.client.Update(ctx, term)
}

// check finds out whether the fence holds. A policy that was installed a moment ago needs some
// time.
func (t *Terms) check(ctx context.Context, token string) error {
	if t.unfenced {
		t.log.Warn("the operator leads without a fence (--unfenced): an operator that was paused and replaced can " +
			"still write")
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, checkPatience, ErrUnfenced)
	defer cancel()
	return t.await(ctx, token+"-none", false)
}

// count waits until the Term counts. What stays in the way, such as a right that the operator
// lacks, is no reason to keep the Lease.
func (t *Terms) count(ctx context.Context, token string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, checkPatience, fmt.Errorf("the API takes no write of this term "+
		"for %v", checkPatience))
	defer cancel()
	return t.await(ctx, token, true)
}

// await tries a write with a token until the API does it, or refuses it.
func (t *Terms) await(ctx context.Context, token string, done bool) error {
	said, waits := "", false
	for {
		allowed, err := t.try(ctx, token)
		if err == nil && allowed == done {
			return nil
		}
		if err == nil && !done && !waits {
			waits = true
			t.log.Info("the API server does not hold the fence yet; this operator leads when it does: after an API " +
				"server has started, that takes up to 30 seconds")
		}
		wait := checkPause
		if err != nil {
			wait = retryAfter
		}
		if err != nil && said != err.Error() {
			said = err.Error()
			t.log.Warn("the fence cannot be tried; trying again", "error", err)
		}
		if cause := pause(ctx, wait); cause != nil {
			return errors.Join(cause, err)
		}
	}
}

// try sends a write that changes nothing, and says whether it would be done.
func (t *Terms) try(ctx context.Context, token string) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	c, err := kubernetes.NewForConfig(rest.AddUserAgent(Fenced(t.config, token), "term"))
	if err != nil {
		return false, err
	}
	probe := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "fence-check-"}}
	_, err = c.CoreV1().ConfigMaps(api.SystemNamespace).Create(ctx, probe,
		metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	switch {
	case err == nil:
		return true, nil
	case fence.Lost(err):
		return false, nil
	default:
		return false, err
	}
}

// Watch tries every 30 s whether the fence still holds. It returns ErrUnfenced or ErrNoTerm when it
// does not, and nil when ctx ends.
func (t *Terms) Watch(ctx context.Context, token string) error {
	for pause(ctx, checkEvery) == nil && !t.unfenced {
		if err := t.holds(ctx, token); err != nil {
			return err
		}
	}
	return nil
}

// holds tries the token of the operator that leads, which has to count, and one of nobody. What
// cannot be tried is tried again.
func (t *Terms) holds(ctx context.Context, token string) error {
	for of, wanted := range map[string]bool{token: true, token + "-none": false} {
		allowed, err := t.try(ctx, of)
		switch {
		case err != nil && ctx.Err() == nil:
			t.log.Info("the fence cannot be tried; trying again", "error", err)
		case err == nil && allowed != wanted && wanted:
			return ErrNoTerm
		case err == nil && allowed != wanted:
			if there, err := t.there(ctx); err == nil && !there {
				return ErrNoTerm
			}
			return ErrUnfenced
		}
	}
	return t.hostsBound(ctx)
}

// Fit returns ErrUnfenced or an *UnboundError where policies are missing, so that this operator
// could not lead. Before there is a Term, only who leads can find out whether the fence holds.
func (t *Terms) Fit(ctx context.Context) error {
	if t.unfenced {
		return nil
	}
	if err := t.hostsBound(ctx); err != nil {
		return err
	}
	if there, err := t.there(ctx); err != nil || !there {
		return err
	}
	if allowed, err := t.try(ctx, "none"); err != nil || !allowed {
		return err
	}
	return ErrUnfenced
}

// there says whether there is a Term.
func (t *Terms) there(ctx context.Context) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	err := t.client.Get(ctx, client.ObjectKey{Namespace: api.SystemNamespace, Name: api.TermName}, &api.Term{})
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return false, nil
	}
	return err == nil, err
}

// pause waits. When ctx ends before, it returns the cause.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}
