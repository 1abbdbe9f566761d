package access_test

import (
	"context"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/holdfast-storage/holdfast/control/access"
	"github.com/holdfast-storage/holdfast/orch/wire"
)

// needs is the Secrets that hosts need, as "host namespace/secret", and the clusters that they manage, as
// "host mgr namespace/cluster".
type needs map[string]bool

func (n needs) Needs(_ context.Context, host, namespace, secret string) (bool, error) {
	return n[host+" "+namespace+"/"+secret], nil
}

func (n needs) Manages(_ context.Context, host string, cluster types.NamespacedName) (bool, error) {
	return n[host+" mgr "+cluster.String()], nil
}

// request reads "verb resource.group/sub namespace/name?selector", where "-" stands for no namespace or name.
func request(t *testing.T, u user.Info, text string) authorizer.AttributesRecord {
	t.Helper()
	words := strings.Fields(text)
	if strings.HasPrefix(words[1], "/") {
		return authorizer.AttributesRecord{User: u, Verb: words[0], Path: words[1]}
	}
	a := authorizer.AttributesRecord{User: u, Verb: words[0], ResourceRequest: true}
	resource, sub, _ := strings.Cut(words[1], "/")
	a.Resource, a.APIGroup, _ = strings.Cut(resource, ".")
	a.Subresource = sub
	object, selector, _ := strings.Cut(words[2], "?")
	a.Namespace, a.Name, _ = strings.Cut(object, "/")
	a.Namespace, a.Name = strings.Trim(a.Namespace, "-"), strings.TrimSuffix(strings.TrimPrefix(a.Name, "-"), "-")
	parsed, err := fields.ParseSelector(selector)
	if err != nil {
		t.Fatal(err)
	}
	a.FieldSelectorRequirements = parsed.Requirements()
	return a
}

// ofOrch is the cluster whose 'ceph orch' asks.
var ofOrch = types.NamespacedName{Namespace: "ns", Name: "ceph"}

// users are who asks.
var users = map[string]user.Info{
	"master":   &user.DefaultInfo{Name: "x", Groups: []string{access.GroupMasters, user.AllAuthenticated}},
	"admin":    &user.DefaultInfo{Name: "x", Groups: []string{access.GroupAdmins, user.AllAuthenticated}},
	"viewer":   &user.DefaultInfo{Name: "x", Groups: []string{access.GroupViewers, user.AllAuthenticated}},
	"h1":       &user.DefaultInfo{Name: access.HostUser("h1"), Groups: []string{access.GroupHosts, user.AllAuthenticated}},
	"pretends": &user.DefaultInfo{Name: access.HostUser("h1"), Groups: []string{user.AllAuthenticated}},
	"nameless": &user.DefaultInfo{Name: access.HostUser(""), Groups: []string{access.GroupHosts, user.AllAuthenticated}},
	"viewing":  &user.DefaultInfo{Name: wire.User(ofOrch), Groups: []string{access.GroupViewers, user.AllAuthenticated}},
	"orch":     &user.DefaultInfo{Name: wire.User(ofOrch), Groups: wire.Groups()},
	"orphan":   &user.DefaultInfo{Name: "holdfast:orch:ns", Groups: wire.Groups()},
	"other":    &user.DefaultInfo{Name: "holdfast:etcd", Groups: []string{user.AllAuthenticated}},
}

func TestAuthorizer(t *testing.T) {
	z := access.NewAuthorizer(needs{"h1 ns/mine": true, "h1 mgr ns/ceph": true})
	for _, test := range []struct {
		who, request string
		allowed      bool
	}{
		{"master", "delete secrets ns/a", true},
		{"admin", "create storageclusters.holdfast.io ns/-", true},
		{"admin", "get /metrics", true},

		{"viewer", "list daemons.holdfast.io -/-", true},
		{"viewer", "watch hosts.holdfast.io -/-", true},
		{"viewer", "get configmaps ns/a", true},
		{"viewer", "get /metrics", true},
		{"viewer", "get secrets ns/a", false},
		{"viewer", "list secrets -/-", false},
		{"viewer", "get * ns/-", false},
		{"viewer", "update daemons.holdfast.io/status ns/a", false},
		{"viewer", "delete hosts.holdfast.io -/h1", false},
		{"viewer", "post /metrics", false},
		{"viewer", "get /", true},
		{"viewer", "get /readyz/etcd", true},
		{"viewer", "get /holdfast/v1/quorum", true},
		{"viewer", "get /holdfast/v1/figures/default/ceph", true},
		{"viewer", "get /holdfast/v1/backup", false},
		{"viewer", "get /debug/pprof/profile", false},
		{"viewer", "get /debug/pprof", false},
		{"viewer", "get /debug/flags/v", false},
		{"admin", "get /debug/pprof/profile", true},
		{"h1", "get /debug/pprof/heap", false},

		{"h1", "get hosts.holdfast.io -/h1", true},
		{"h1", "get hosts.holdfast.io -/h2", false},
		{"h1", "list hosts.holdfast.io -/-", false},
		{"h1", "list hosts.holdfast.io -/-?metadata.name=h1", true},
		{"h1", "watch hosts.holdfast.io -/-?metadata.name=h1", true},
		{"h1", "watch hosts.holdfast.io -/-?metadata.name=h2", false},
		{"h1", "watch hosts.holdfast.io -/-?metadata.name!=h1", false},
		{"h1", "get hosts.holdfast.io -/h2?metadata.name=h1", false},
		{"h1", "create hosts.holdfast.io -/-", false}, // It would give itself back what a deletion took.
		{"h1", "update hosts.holdfast.io -/h1", false},
		{"h1", "patch hosts.holdfast.io -/h1", false},
		{"h1", "delete hosts.holdfast.io -/h1", false},
		{"h1", "patch hosts.holdfast.io/status -/h1", true},
		{"h1", "patch hosts.holdfast.io/status -/h2", false},

		{"h1", "list daemons.holdfast.io -/-?spec.host=h1", true},
		{"h1", "watch daemons.holdfast.io ns/-?spec.host=h1", true},
		{"h1", "list daemons.holdfast.io -/-?spec.host=h2", false},
		{"h1", "list daemons.holdfast.io -/-", false},
		{"h1", "get daemons.holdfast.io ns/a", false},
		{"h1", "create daemons.holdfast.io ns/-", false},
		{"h1", "delete daemons.holdfast.io ns/a", false},
		{"h1", "deletecollection daemons.holdfast.io ns/-?spec.host=h1", false},
		{"h1", "patch daemons.holdfast.io ns/a", true}, // HostAdmission looks at what is patched.
		{"h1", "update daemons.holdfast.io/status ns/a", true},

		{"h1", "get secrets ns/mine", true},
		{"h1", "get secrets ns/other", false},
		{"h1", "get secrets elsewhere/mine", false},
		{"h1", "list secrets ns/-", false},
		{"h1", "watch secrets ns/mine?metadata.name=mine", false},
		{"h1", "update secrets ns/mine", false},

		{"h1", "create leases.coordination.k8s.io holdfast-system/-", true},
		{"h1", "create leases.coordination.k8s.io ns/-", false},
		{"h1", "update leases.coordination.k8s.io holdfast-system/host-h1", true},
		{"h1", "update leases.coordination.k8s.io holdfast-system/host-h2", false},
		{"h1", "update leases.coordination.k8s.io holdfast-system/leader", false},
		{"h1", "delete leases.coordination.k8s.io holdfast-system/host-h1", false},

		{"viewer", "create selfsubjectaccessreviews.authorization.k8s.io -/-", true},
		{"h1", "create selfsubjectreviews.authentication.k8s.io -/-", true},
		{"other", "create selfsubjectrulesreviews.authorization.k8s.io -/-", true},
		{"viewer", "create subjectaccessreviews.authorization.k8s.io -/-", false}, // It would tell what others may do.
		{"h1", "create events ns/-", false},
		{"h1", "list events ns/-", false},
		{"h1", "get storageclusters.holdfast.io ns/a", false},
		{"h1", "get configmaps holdfast-system/servers", false},
		{"h1", "get customresourcedefinitions.apiextensions.k8s.io -/hosts.holdfast.io", false},

		{"h1", "get /apis/holdfast.io/v1alpha1", true},
		{"h1", "get /holdfast/v1/servers", true},
		{"h1", "get /metrics", false},
		{"h1", "post /holdfast/v1/renew", true},
		{"viewer", "post /holdfast/v1/renew", false},
		{"h1", "post /holdfast/v1/orch/ns/ceph/get_hosts", true},
		{"h1", "post /holdfast/v1/orch/ns/other/get_hosts", false},
		{"h1", "post /holdfast/v1/orch/other/ceph/get_hosts", false},
		{"h1", "post /holdfast/v1/orch/ns/ceph/../other/get_hosts", false},
		{"h1", "get /holdfast/v1/orch/ns/ceph/get_hosts", false},
		{"pretends", "post /holdfast/v1/orch/ns/ceph/get_hosts", false},
		{"viewer", "post /holdfast/v1/orch/ns/ceph/get_hosts", false},
		{"admin", "post /holdfast/v1/orch/ns/ceph/get_hosts", true},
		{"pretends", "get hosts.holdfast.io -/h1", false},
		{"nameless", "create hosts.holdfast.io -/-", false},
		{"other", "get /openapi/v3", true},
		{"other", "get /apiary", false},
		{"other", "list hosts.holdfast.io -/-", false},
	} {
		t.Run(test.who+" "+test.request, func(t *testing.T) {
			got, why, err := z.Authorize(t.Context(), request(t, users[test.who], test.request))
			if err != nil || (got == authorizer.DecisionAllow) != test.allowed {
				t.Errorf("decision %v (%s), %v, want allowed %v", got, why, err, test.allowed)
			}
			if known := test.who == "viewer" || test.who == "h1"; known && !test.allowed && why == "" {
				t.Error("it is not said why, or whom to ask")
			}
		})
	}
}

// TestAuthorizer_orch: the servers alone act in the name of 'ceph orch', and that has no rights beside
// those of its cluster.
func TestAuthorizer_orch(t *testing.T) {
	z := access.NewAuthorizer(needs{"h1 mgr ns/ceph": true})
	for _, test := range []struct {
		who, request string
		allowed      bool
	}{
		{"master", "impersonate users -/holdfast:orch:ns:ceph", true},
		{"h1", "impersonate users -/holdfast:orch:ns:ceph", false},
		{"h1", "impersonate groups -/holdfast:orch", false},
		{"viewer", "impersonate users -/holdfast:orch:ns:ceph", false},
		{"viewer", "impersonate groups -/holdfast:orch", false},
		{"viewer", "post /holdfast/v1/orch/ns/ceph/apply", false},
		{"orch", "impersonate users -/holdfast:orch:ns:other", false},
		{"orch", "impersonate groups -/system:masters", false},
		{"orch", "post /holdfast/v1/orch/ns/ceph/apply", false},
		{"orch", "get secrets ns/a", false},
		{"orch", "list secrets ns/-", false},
		{"orch", "deletecollection filesystems.holdfast.io ns/-", false},
		{"orch", "update actions.holdfast.io/status ns/a", false},
		{"orch", "patch storageclusters.holdfast.io ns/ceph", true},
		{"orch", "patch storageclusters.holdfast.io ns/other", false},
		{"orch", "patch storageclusters.holdfast.io/status ns/ceph", false},
		{"orch", "create storagenodes.holdfast.io ns/-", true},
		{"orch", "create storagenodes.holdfast.io elsewhere/-", false},
		{"orch", "create tokenreviews.authentication.k8s.io -/-", false},
		{"viewing", "patch storageclusters.holdfast.io ns/ceph", false},
		{"viewing", "create actions.holdfast.io ns/-", false},
		{"orphan", "patch storageclusters.holdfast.io ns/ceph", false},
	} {
		decision, _, err := z.Authorize(t.Context(), request(t, users[test.who], test.request))
		if (decision == authorizer.DecisionAllow) != test.allowed || err != nil {
			t.Errorf("%s: %s: %v, %v", test.who, test.request, decision, err)
		}
	}
}
