package access

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// Rules lists what a user may do in a namespace. Authorize is asked for each verb of each resource
// that is served, so that the list follows from the rules that decide requests, and from nothing
// else.
func (z *Authorizer) Rules(
	ctx context.Context, u user.Info, namespace string, served []*metav1.APIResourceList,
) authorizationv1.SubjectRulesReviewStatus {
	q := &questions{z: z, user: u, namespace: namespace, incomplete: map[string]bool{}}
	status := authorizationv1.SubjectRulesReviewStatus{ResourceRules: []authorizationv1.ResourceRule{}}
	status.NonResourceRules = q.paths(ctx)
	if q.may(ctx, authorizer.AttributesRecord{Verb: "*", APIGroup: "*", Resource: "*", ResourceRequest: true}) {
		all := []string{"*"}
		status.ResourceRules = []authorizationv1.ResourceRule{{Verbs: all, APIGroups: all, Resources: all}}
	} else {
		for _, list := range served {
			status.ResourceRules = append(status.ResourceRules, q.resources(ctx, list)...)
		}
	}
	q.untold()
	status.Incomplete = len(q.incomplete) > 0
	status.EvaluationError = strings.Join(slices.Sorted(maps.Keys(q.incomplete)), "; ")
	return status
}

// questions asks an authorizer about one user in one namespace.
type questions struct {
	z         *Authorizer
	user      user.Info
	namespace string
	// told are "verb resource" of what the list has, and incomplete says why something is not on it.
	told       []string
	incomplete map[string]bool
}

func (q *questions) may(ctx context.Context, a authorizer.AttributesRecord) bool {
	a.User = q.user
	decision, _, err := q.z.Authorize(ctx, a)
	if err != nil {
		q.incomplete[err.Error()] = true
	}
	return decision == authorizer.DecisionAllow
}

// resources are the rules of an API group. Verbs that are allowed alike on several resources stand
// in one rule.
func (q *questions) resources(ctx context.Context, list *metav1.APIResourceList) []authorizationv1.ResourceRule {
	var rules []authorizationv1.ResourceRule
	for i := range list.APIResources {
		r := &list.APIResources[i]
		for _, name := range slices.Concat([]string{""}, q.names()) {
			if verbs := q.verbs(ctx, list, r, name); len(verbs) > 0 {
				rules = merge(rules, authorizationv1.ResourceRule{
					Verbs: verbs, APIGroups: []string{groupOf(list)}, Resources: []string{r.Name}, ResourceNames: namesOf(name),
				})
			}
		}
	}
	return rules
}

// verbs are what the user may do with a resource, or with the one object of a name what it may not
// do with all of them.
func (q *questions) verbs(
	ctx context.Context, list *metav1.APIResourceList, r *metav1.APIResource, name string,
) []string {
	var verbs []string
	asked := authorizer.AttributesRecord{APIGroup: groupOf(list), APIVersion: "*", Name: name, ResourceRequest: true}
	asked.Resource, asked.Subresource, _ = strings.Cut(r.Name, "/")
	if r.Namespaced {
		asked.Namespace = q.namespace
	}
	for _, verb := range r.Verbs {
		asked.Verb = verb
		key := verb + " " + resource(asked)
		if name != "" && slices.Contains(q.told, key) || !q.may(ctx, asked) {
			continue
		}
		verbs, q.told = append(verbs, verb), append(q.told, key)
	}
	return verbs
}

// names are those of the objects that are a host's own.
func (q *questions) names() []string {
	if host, ok := AgentOf(q.user); ok {
		return []string{host, api.HostLease(host)}
	}
	return nil
}

// untold notes what a host may do that no list can say, as it depends on a selector or on other
// objects.
func (q *questions) untold() {
	if _, ok := AgentOf(q.user); !ok {
		return
	}
	for _, r := range hostRules {
		told := func(verb string) bool { return slices.Contains(q.told, verb+" "+r.resource) }
		if r.why != "" && !slices.ContainsFunc(strings.Fields(r.verbs), told) {
			q.incomplete[r.resource+": "+r.why] = true
		}
	}
}

// paths are the rules of what is no resource. A path that ends in a slash opens what is below it.
func (q *questions) paths(ctx context.Context) []authorizationv1.NonResourceRule {
	if q.may(ctx, authorizer.AttributesRecord{Verb: "*", Path: "*"}) {
		return []authorizationv1.NonResourceRule{{Verbs: []string{"*"}, NonResourceURLs: []string{"*"}}}
	}
	rules := []authorizationv1.NonResourceRule{}
	for _, verb := range []string{"get", "post"} {
		rule := authorizationv1.NonResourceRule{Verbs: []string{verb}}
		for _, path := range slices.Concat(openPaths, viewerPaths, []string{RenewPath}) {
			if q.may(ctx, authorizer.AttributesRecord{Verb: verb, Path: path}) {
				rule.NonResourceURLs = append(rule.NonResourceURLs, pattern(path))
			}
		}
		if len(rule.NonResourceURLs) > 0 {
			rules = append(rules, rule)
		}
	}
	return rules
}

func pattern(path string) string {
	if path != "/" && strings.HasSuffix(path, "/") {
		return path + "*"
	}
	return path
}

func groupOf(list *metav1.APIResourceList) string {
	group, _, ok := strings.Cut(list.GroupVersion, "/")
	if !ok {
		return "" // the core group's version stands alone
	}
	return group
}

func namesOf(name string) []string {
	if name == "" {
		return nil
	}
	return []string{name}
}

func merge(rules []authorizationv1.ResourceRule, next authorizationv1.ResourceRule) []authorizationv1.ResourceRule {
	alike := func(r authorizationv1.ResourceRule) bool {
		return cmp.Or(slices.Compare(r.Verbs, next.Verbs), slices.Compare(r.ResourceNames, next.ResourceNames)) == 0
	}
	if i := slices.IndexFunc(rules, alike); i >= 0 {
		rules[i].Resources = append(rules[i].Resources, next.Resources...)
		return rules
	}
	return append(rules, next)
}
