package access

import (
	"context"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/livefigures"
	"github.com/holdfast-storage/holdfast/orch/wire"
)

// Secrets tells which Secrets a host needs.
type Secrets interface {
	// Needs says whether a Daemon on the host, or a command that is carried out there, in that namespace, names the Secret.
	Needs(ctx context.Context, host, namespace, secret string) (bool, error)
}

// Managers tells on which hosts the managers of Ceph clusters are.
type Managers interface {
	// Manages says whether the host has a Daemon ceph-mgr of the cluster.
	Manages(ctx context.Context, host string, cluster types.NamespacedName) (bool, error)
}

// HostFacts is what an Authorizer has to know of a host's Daemons.
type HostFacts interface {
	Secrets
	Managers
}

// Authorizer decides by group; what a host may do is listed in hostRules.
type Authorizer struct{ facts HostFacts }

var _ authorizer.Authorizer = &Authorizer{}

// NewAuthorizer returns an authorizer that asks facts which Secrets a host needs, and the orchestrators of
// which clusters it may call.
func NewAuthorizer(facts HostFacts) *Authorizer { return &Authorizer{facts} }

// rule allows some verbs on a resource. A rule with a condition allows them only where it holds.
type rule struct {
	verbs    string
	resource string
	// why is told to someone who is refused because the condition does not hold.
	why string
	if_ func(ctx context.Context, z *Authorizer, host string, a authorizer.Attributes) (bool, error)
}

// hostRules is everything that a host may do. Where a rule cannot tell by the request alone, because the name or the
// content of the object matters, HostAdmission looks at the object.
var hostRules = []rule{
	{"get list watch", "hosts.holdfast.io", "a host may read only itself: select it by metadata.name", named(ownName)},
	{"update patch", "hosts.holdfast.io/status", "a host may write only its own status", named(ownName)},
	{"list watch", "daemons.holdfast.io", "a host may read only its own daemons: select them by spec.host", selected("spec.host")},
	{"update patch", "daemons.holdfast.io", "", nil},
	{"update patch", "daemons.holdfast.io/status", "", nil},
	{"list watch", "actions.holdfast.io", "a host may read only its own actions: select them by spec.host", selected("spec.host")},
	{"update patch", "actions.holdfast.io/status", "", nil},
	{"get", "secrets", "no daemon of the host, and no command for one, needs this secret", neededSecret},
	{"create", "leases.coordination.k8s.io", "a host's lease is in " + api.SystemNamespace, inSystem},
	{"get update patch", "leases.coordination.k8s.io", "a host may use only its own lease", both(inSystem, named(api.HostLease))},
}

// hostsMay is told to a host where no rule comes near to what it asks for.
const hostsMay = "a host has only the rights that its agent needs; for anything else ask an administrator"

type condition = func(ctx context.Context, z *Authorizer, host string, a authorizer.Attributes) (bool, error)

// openPaths may be read by everyone who has a certificate: they say what there is, and nothing of what it holds. A path that
// ends in a slash means everything below it.
var openPaths = []string{
	"/api", "/api/", "/apis", "/apis/", "/openapi/", "/version", "/version/",
	"/healthz", "/livez", "/readyz", "/holdfast/v1/servers", "/holdfast/v1/trust",
}

// viewerPaths are what viewers may read beside openPaths. Whatever else the server serves, such as profiles, which slow it down and
// show what is in its memory, is for administrators alone.
var viewerPaths = []string{
	"/", "/metrics", "/healthz/", "/livez/", "/readyz/", "/holdfast/v1/quorum", livefigures.Prefix,
}

// openReviews are what everyone who has a certificate may ask: who they are, and what they may do.
var openReviews = []string{
	"selfsubjectreviews.authentication.k8s.io",
	"selfsubjectaccessreviews.authorization.k8s.io", "selfsubjectrulesreviews.authorization.k8s.io",
}

// Authorize decides a request. Nobody else is asked after it, so no opinion means no.
func (z *Authorizer) Authorize(ctx context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	u := a.GetUser()
	if u == nil {
		return authorizer.DecisionNoOpinion, "not authenticated", nil
	}
	if inGroup(u, GroupMasters) || inGroup(u, GroupAdmins) {
		return authorizer.DecisionAllow, "", nil
	}
	if open(a) || viewer(a) {
		return authorizer.DecisionAllow, "", nil
	}
	if cluster, ok := wire.ClusterOf(u.GetName(), u.GetGroups()); ok {
		decision, why := forOrch(cluster, a)
		return decision, why, nil
	}
	host, ok := AgentOf(u)
	switch {
	case ok && a.IsResourceRequest():
		return z.host(ctx, host, a)
	case ok && a.GetVerb() == "post" && a.GetPath() == RenewPath:
		return authorizer.DecisionAllow, "", nil
	case ok && a.GetVerb() == "post" && strings.HasPrefix(a.GetPath(), wire.Prefix):
		return z.orch(ctx, host, a.GetPath())
	case ok:
		return authorizer.DecisionNoOpinion, hostsMay, nil
	}
	if inGroup(u, GroupViewers) {
		return authorizer.DecisionNoOpinion, "viewers may read, and read no secrets; for anything else ask an administrator", nil
	}
	return authorizer.DecisionNoOpinion, "", nil
}

// orch lets a host call the orchestrator of a cluster that it has a manager of.
func (z *Authorizer) orch(ctx context.Context, host, path string) (authorizer.Decision, string, error) {
	cluster, _, ok := wire.Parse(path)
	if !ok {
		return authorizer.DecisionNoOpinion, hostsMay, nil
	}
	may, err := z.facts.Manages(ctx, host, cluster)
	if err != nil {
		return authorizer.DecisionNoOpinion, "", err
	}
	if !may {
		return authorizer.DecisionNoOpinion, "host " + host + " has no ceph-mgr of cluster " + cluster.String(), nil
	}
	return authorizer.DecisionAllow, "", nil
}

func (z *Authorizer) host(ctx context.Context, host string, a authorizer.Attributes) (authorizer.Decision, string, error) {
	why := hostsMay
	for _, r := range hostRules {
		if r.resource != resource(a) || !slices.Contains(strings.Fields(r.verbs), a.GetVerb()) {
			continue
		}
		if r.if_ == nil {
			return authorizer.DecisionAllow, "", nil
		}
		ok, err := r.if_(ctx, z, host, a)
		if err != nil {
			return authorizer.DecisionNoOpinion, "", err
		}
		if ok {
			return authorizer.DecisionAllow, "", nil
		}
		why = r.why
	}
	return authorizer.DecisionNoOpinion, why, nil
}

// resource writes what a request is about as "resource.group/subresource".
func resource(a authorizer.Attributes) string {
	name := a.GetResource()
	if a.GetAPIGroup() != "" {
		name += "." + a.GetAPIGroup()
	}
	if a.GetSubresource() != "" {
		name += "/" + a.GetSubresource()
	}
	return name
}

func open(a authorizer.Attributes) bool {
	if !inGroup(a.GetUser(), user.AllAuthenticated) {
		return false
	}
	if a.IsResourceRequest() {
		return a.GetVerb() == "create" && slices.Contains(openReviews, resource(a))
	}
	if a.GetVerb() != "get" {
		return false
	}
	return slices.ContainsFunc(openPaths, func(path string) bool { return covers(path, a.GetPath()) })
}

// covers says whether a path is the one that is opened, or below it where that ends in a slash. The root opens itself alone.
func covers(opened, path string) bool {
	return path == opened || opened != "/" && strings.HasSuffix(opened, "/") && strings.HasPrefix(path, opened)
}

func viewer(a authorizer.Attributes) bool {
	if !inGroup(a.GetUser(), GroupViewers) {
		return false
	}
	if !a.IsResourceRequest() {
		return a.GetVerb() == "get" && slices.ContainsFunc(viewerPaths, func(path string) bool { return covers(path, a.GetPath()) })
	}
	// What is asked of all groups or resources is asked of Secrets, too.
	ofCore := a.GetAPIGroup() == "" || a.GetAPIGroup() == "*"
	isSecret := ofCore && (a.GetResource() == "secrets" || a.GetResource() == "*")
	return !isSecret && slices.Contains([]string{"get", "list", "watch"}, a.GetVerb())
}

func ownName(host string) string { return host }

// named holds for requests for the one object whose name belongs to the host, by name or by selecting metadata.name.
func named(name func(host string) string) condition {
	return func(_ context.Context, _ *Authorizer, host string, a authorizer.Attributes) (bool, error) {
		return a.GetName() == name(host) || selects(a, "metadata.name", name(host)), nil
	}
}

// selected holds for lists and watches that select the host by a field.
func selected(field string) condition {
	return func(_ context.Context, _ *Authorizer, host string, a authorizer.Attributes) (bool, error) {
		return selects(a, field, host), nil
	}
}

func selects(a authorizer.Attributes, field, value string) bool {
	requirements, err := a.GetFieldSelector()
	if err != nil || a.GetName() != "" && a.GetVerb() != "list" && a.GetVerb() != "watch" {
		return false
	}
	return slices.ContainsFunc(requirements, func(r fields.Requirement) bool {
		return r.Field == field && r.Value == value && (r.Operator == selection.Equals || r.Operator == selection.DoubleEquals)
	})
}

func inSystem(_ context.Context, _ *Authorizer, _ string, a authorizer.Attributes) (bool, error) {
	return a.GetNamespace() == api.SystemNamespace, nil
}

func both(first, second condition) condition {
	return func(ctx context.Context, z *Authorizer, host string, a authorizer.Attributes) (bool, error) {
		if ok, err := first(ctx, z, host, a); !ok || err != nil {
			return false, err
		}
		return second(ctx, z, host, a)
	}
}

func neededSecret(ctx context.Context, z *Authorizer, host string, a authorizer.Attributes) (bool, error) {
	return z.facts.Needs(ctx, host, a.GetNamespace(), a.GetName())
}
