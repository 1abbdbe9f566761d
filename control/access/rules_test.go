package access_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/control/access"
)

var allVerbs = metav1.Verbs{"create", "delete", "get", "list", "patch", "update", "watch"}

// served is a part of what a server serves.
var served = []*metav1.APIResourceList{
	{GroupVersion: "v1", APIResources: []metav1.APIResource{
		{Name: "configmaps", Namespaced: true, Verbs: allVerbs}, {Name: "secrets", Namespaced: true, Verbs: allVerbs},
	}},
	{GroupVersion: "coordination.k8s.io/v1", APIResources: []metav1.APIResource{
		{Name: "leases", Namespaced: true, Verbs: allVerbs},
	}},
	{GroupVersion: "holdfast.io/v1alpha1", APIResources: []metav1.APIResource{
		{Name: "hosts", Verbs: allVerbs},
		{Name: "hosts/status", Verbs: metav1.Verbs{"get", "patch", "update"}},
		{Name: "daemons", Namespaced: true, Verbs: allVerbs},
		{Name: "daemons/status", Namespaced: true, Verbs: metav1.Verbs{"get", "patch", "update"}},
	}},
	{GroupVersion: "authorization.k8s.io/v1", APIResources: []metav1.APIResource{
		{Name: "selfsubjectaccessreviews", Verbs: metav1.Verbs{"create"}},
	}},
}

// sentences writes rules as "verbs resources.group names".
func sentences(rules []authorizationv1.ResourceRule) []string {
	var all []string
	for _, r := range rules {
		words := []string{strings.Join(r.Verbs, ","), strings.Join(r.Resources, ",") + "." + strings.Join(r.APIGroups, ",")}
		all = append(all, strings.Join(append(words, r.ResourceNames...), " "))
	}
	return all
}

func TestRules(t *testing.T) {
	const review = "create selfsubjectaccessreviews.authorization.k8s.io"
	for who, want := range map[string][]string{
		"admin":  {"* *.*"},
		"master": {"* *.*"},
		"viewer": {
			"get,list,watch configmaps.", "get,list,watch leases.coordination.k8s.io",
			"get,list,watch hosts,daemons.holdfast.io", "get hosts/status,daemons/status.holdfast.io", review,
		},
		"h1": {
			"get,patch,update leases.coordination.k8s.io host-h1", "create leases.coordination.k8s.io",
			"get,list,watch hosts.holdfast.io h1", "patch,update hosts/status.holdfast.io h1",
			"patch,update daemons,daemons/status.holdfast.io", review,
		},
		"other": {review},
	} {
		got := access.NewAuthorizer(needs{}).Rules(t.Context(), users[who], api.SystemNamespace, served)
		have := sentences(got.ResourceRules)
		slices.Sort(have)
		slices.Sort(want)
		if diff := cmp.Diff(want, have); diff != "" {
			t.Errorf("%s (-want +got):\n%s", who, diff)
		}
		if got.Incomplete != (who == "h1") {
			t.Errorf("%s: incomplete %v: %s", who, got.Incomplete, got.EvaluationError)
		}
	}
}

// TestRules_sayWhatIsMissing: what a host may do that no list can say is named, with why.
func TestRules_sayWhatIsMissing(t *testing.T) {
	got := access.NewAuthorizer(needs{}).Rules(t.Context(), users["h1"], "ns", served).EvaluationError
	for _, want := range []string{
		"secrets: no daemon of the host", "daemons.holdfast.io: a host may read only its own daemons",
		"a host's lease is in holdfast-system",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q does not say %q", got, want)
		}
	}
}

// TestRules_paths: each path of the list is one that the authorizer lets through, and none is left
// out.
func TestRules_paths(t *testing.T) {
	z := access.NewAuthorizer(needs{})
	for who, u := range users {
		listed := map[string]bool{}
		for _, rule := range z.Rules(t.Context(), u, "ns", nil).NonResourceRules {
			for _, path := range rule.NonResourceURLs {
				listed[rule.Verbs[0]+" "+path] = true
			}
		}
		for _, asked := range []struct{ verb, path, listed string }{
			{"get", "/apis/holdfast.io", "/apis/*"},
			{"get", "/healthz", "/healthz"},
			{"get", "/healthz/etcd", "/healthz/*"},
			{"get", "/metrics", "/metrics"},
			{"get", "/debug/pprof/heap", "/debug/*"},
			{"post", "/holdfast/v1/renew", "/holdfast/v1/renew"},
		} {
			request := authorizer.AttributesRecord{User: u, Verb: asked.verb, Path: asked.path}
			decision, _, err := z.Authorize(t.Context(), request)
			if err != nil {
				t.Fatal(err)
			}
			if got := listed["* *"] || listed[asked.verb+" "+asked.listed]; got != (decision == authorizer.DecisionAllow) {
				t.Errorf("%s: %s %s is listed: %v, but decided: %v", who, asked.verb, asked.path, got, decision)
			}
		}
	}
}
