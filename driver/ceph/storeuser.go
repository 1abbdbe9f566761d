package ceph

import (
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/internal/rgw"
)

// kindS3 is the kind of Secrets with the keys of a user.
const kindS3 = "s3"

// defaultMaxBuckets is rgw_user_max_buckets.
const defaultMaxBuckets = 1000

func userSecret(cluster, user string) string { return cluster + "-s3-" + user }

// wordOf tells one thing that is asked of a gateway's agent from all others.
func wordOf(about ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(about, "\n")))
	return hex.EncodeToString(sum[:10])
}

// makeUserKeys makes what the Secret of a user holds.
func makeUserKeys(want engine.SecretWant) map[string][]byte {
	return map[string][]byte{rgw.SecretAccessKey: []byte(rgw.AccessKey(want.Params[rgw.ParamOwner])), rgw.SecretSecretKey: []byte(rand.Text() + rand.Text())}
}

// userPlan is an ObjectStoreUser while it is planned.
type userPlan struct {
	*api.ObjectStoreUser
	store *storePlan // nil where there is none
	// secret is the Secret with its keys, as it is; nil while there is none.
	secret *engine.SecretInfo
	// word is what an agent says that has done what is wanted.
	word string
	// wrong is why it cannot be as it is declared, or what it waits for.
	wrong engine.Objection
}

func (x *userPlan) object() string { return engine.ResourceObject(x.ObjectStoreUser) }

// planUsers finds out how the users stand.
func (p *planner) planUsers() {
	for _, u := range engine.OfKind[*api.ObjectStoreUser](p.view.Resources) {
		x := &userPlan{ObjectStoreUser: u}
		if i := slices.IndexFunc(p.stores, func(s *storePlan) bool { return s.Name == u.Spec.Store }); i >= 0 {
			x.store = p.stores[i]
		}
		about := "removed"
		if i := slices.IndexFunc(p.view.Secrets, func(s engine.SecretInfo) bool { return s.Name == userSecret(p.cluster.Name, u.Name) }); i >= 0 {
			x.secret = &p.view.Secrets[i]
		}
		if u.DeletionTimestamp == nil && x.secret != nil {
			about = "keys " + x.secret.UID
		}
		x.word = wordOf(string(u.UID), strconv.FormatInt(u.Generation, 10), about)
		if u.DeletionTimestamp == nil {
			p.checkUser(x)
		}
		p.users = append(p.users, x)
	}
}

func (p *planner) checkUser(x *userPlan) {
	young := p.now.Sub(x.CreationTimestamp.Time) < settleTime
	switch failure := p.failureOf(x.object()); {
	case x.store == nil && young:
		p.moving = true
		x.wrong = engine.Wait(api.ReasonSettling, "cluster %s has no ObjectStore %s yet", p.cluster.Name, x.Spec.Store)
	case x.store == nil:
		x.wrong = engine.Refusal(api.ReasonDependencyNotReady,
			"cluster %s has no ObjectStore %s: declare it, or create an ObjectStoreUser of an existing ObjectStore",
			p.cluster.Name, x.Spec.Store)
	case x.store.DeletionTimestamp != nil && x.Status.Applied == "":
		x.wrong = engine.Wait(api.ReasonDependencyNotReady, "objectstore %s is being deleted", x.Spec.Store)
	case failure.Reason == api.ReasonConflict:
		x.wrong = engine.Refusal(failure.Reason, "%s", failure.Message)
	}
}

// done says whether an agent has done what is wanted.
func (p *planner) done(x *userPlan) bool {
	return x.Status.Applied == x.word || p.did(x.object(), x.word)
}

// did says whether the agent of a gateway has carried out a command.
func (p *planner) did(object, word string) bool {
	if p.seen == nil {
		return false
	}
	for _, r := range p.seen.Gateways {
		if r.Done[object] == word {
			return true
		}
	}
	return false
}

// gatewayOf is the Daemon of a gateway of a store that answers, the first by its name; empty for none.
func (p *planner) gatewayOf(store string) (name string) {
	for _, d := range p.daemonsOf(rgw.Type) {
		answers := d.Spec.Parameters[rgw.ParamStore] == store && p.gatewayAnswers(d) && !told(d) && d.DeletionTimestamp == nil
		if answers && (name == "" || d.Name < name) {
			name = d.Name
		}
	}
	return name
}

// gatewayCommand has the agent of a gateway do something. What it is about depends on nothing else.
func (p *planner) gatewayCommand(
	reason api.Reason, object, daemon, verb, secret string, params map[string]string, why string,
) {
	p.plan.Commands = append(p.plan.Commands, engine.Command{
		Verb: verb, Object: object, Params: params, Daemon: daemon, Secret: secret, Line: object,
		Reason: why, Risk: api.RiskNone,
	})
	p.decide(api.VerdictDo, reason, object, "%s: %s", verb, why)
}

// writeUsers has the keys of users made, given to their stores, and taken away again.
func (p *planner) writeUsers() {
	for _, x := range p.users {
		switch {
		case x.store == nil && x.DeletionTimestamp == nil, x.wrong.Verdict == api.VerdictWait:
		case x.DeletionTimestamp != nil:
			p.removeUser(x)
		case x.secret == nil:
			p.plan.Secrets = append(p.plan.Secrets, engine.SecretWant{
				Name: userSecret(p.cluster.Name, x.Name), Kind: kindS3, Params: map[string]string{rgw.ParamOwner: string(x.UID)},
			})
		case p.done(x):
		default:
			if g := p.gatewayOf(x.Spec.Store); g != "" {
				p.gatewayCommand(api.ReasonDeclared, x.object(), g, rgw.VerbUserSet, x.secret.Name, x.params(), "declared so")
			}
		}
	}
}

// params are what a gateway's agent is told of a user. No secret is among them.
func (x *userPlan) params() map[string]string {
	q := &x.Spec.Quota
	params := map[string]string{
		rgw.ParamWord: x.word, rgw.ParamUser: x.Name, rgw.ParamOwner: string(x.UID),
		rgw.ParamDisplayName: cmp.Or(x.Spec.DisplayName, x.Name), rgw.ParamMaxBuckets: strconv.Itoa(defaultMaxBuckets),
	}
	if q.MaxBuckets != nil {
		params[rgw.ParamMaxBuckets] = strconv.Itoa(int(*q.MaxBuckets))
	}
	if q.MaxObjects != nil {
		params[rgw.ParamMaxObjects] = strconv.FormatInt(*q.MaxObjects, 10)
	}
	if q.MaxSize != nil {
		params[rgw.ParamMaxSize] = strconv.FormatInt(q.MaxSize.Value(), 10)
	}
	var caps [][2]string
	for _, what := range slices.Sorted(maps.Keys(x.Spec.Capabilities)) {
		caps = append(caps, [2]string{what, string(x.Spec.Capabilities[what])})
	}
	if len(caps) > 0 {
		params[rgw.ParamCaps] = rgw.Caps(caps)
	}
	return params
}

// made says whether a store may have something of the user: its Secret comes before all else.
func (x *userPlan) made() bool { return x.secret != nil || x.Status.Applied != "" }

// removeUser takes the keys of a user from its store, and then their Secret away.
func (p *planner) removeUser(x *userPlan) {
	switch {
	case !x.made():
	case x.store == nil || p.done(x):
		if x.secret != nil {
			p.plan.Secrets = append(p.plan.Secrets, engine.SecretWant{Name: x.secret.Name, Gone: true})
		}
	default:
		params := map[string]string{rgw.ParamWord: x.word, rgw.ParamUser: x.Name, rgw.ParamOwner: string(x.UID)}
		if x.Spec.DeletionPolicy != api.DeletionWipe {
			params[rgw.ParamKeep] = "true"
		}
		if g := p.gatewayOf(x.Spec.Store); g != "" {
			p.gatewayCommand(api.ReasonDeleting, x.object(), g, rgw.VerbUserRemove, "", params,
				"the ObjectStoreUser was deleted")
		}
	}
}

// putUsers writes the statuses of ObjectStoreUsers, and lets those go that are gone.
func (p *planner) putUsers() {
	for _, x := range p.users {
		next := x.DeepCopy()
		s := &next.Status
		s.ObservedGeneration = x.Generation
		if p.did(x.object(), x.word) {
			s.Applied = x.word
		}
		if x.DeletionTimestamp != nil {
			if !x.made() || len(p.have) == 0 || x.secret == nil && (x.store == nil || p.done(x)) {
				p.plan.LetGo(x.ObjectStoreUser)
				continue
			}
			wait := p.whyUserStays(x)
			s.State, s.Message = api.ResourceDeleting, wait.Message
			p.object(x.object(), wait)
			p.plan.PutResource(x.ObjectStoreUser, next)
			continue
		}
		var problems []string
		if x.wrong.Verdict == api.VerdictRefuse {
			p.object(x.object(), x.wrong)
			problems = []string{x.wrong.Message}
		}
		p.tellUser(x, s)
		engine.Accept(next, problems, p.now)
		p.plan.PutResource(x.ObjectStoreUser, next)
	}
}

func (p *planner) whyUserStays(x *userPlan) engine.Objection {
	switch failure := p.failureOf(x.object()); {
	case !failure.None():
		return engine.Wait(failure.Reason, "deletion waits: %s", failure.Message)
	case x.store != nil && !p.done(x) && p.gatewayOf(x.Spec.Store) == "":
		return engine.Wait(api.ReasonNotAnswering,
			"deletion waits: no gateway of objectstore %s answers to remove its keys", x.Spec.Store)
	}
	return engine.Wait(api.ReasonDeleting, "deletion: removing its keys from the store")
}

func (p *planner) tellUser(x *userPlan, s *api.ObjectStoreUserStatus) {
	s.Message = ""
	switch failure := p.failureOf(x.object()); {
	case !x.wrong.None():
		s.State, s.Message = api.ResourcePending, x.wrong.Message
	case !failure.None():
		s.State, s.Message = api.ResourcePending, failure.Message
	case p.gatewayOf(x.Spec.Store) == "" && s.Applied != "":
		s.State, s.Message = api.ResourceOffline, fmt.Sprintf("no gateway of objectstore %s answers", x.Spec.Store)
	case p.gatewayOf(x.Spec.Store) == "":
		s.State, s.Message = api.ResourcePending, fmt.Sprintf("no gateway of objectstore %s answers yet", x.Spec.Store)
	case x.secret == nil || !p.done(x):
		s.State, s.Message = api.ResourceCreating, "writing its keys and quotas to the store"
	default:
		s.State, s.Secret = api.ResourceOnline, x.secret.Name
	}
	if x.store != nil {
		s.Endpoints = p.endpoints(x.store)
	}
}
