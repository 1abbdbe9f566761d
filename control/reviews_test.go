package control_test

import (
	"slices"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/holdfast-storage/holdfast/control/access"
	"github.com/holdfast-storage/holdfast/control/pki"
)

// TestReviews: administrators, viewers and hosts are told who they are and what they may do, as it
// is decided.
func TestReviews(t *testing.T) {
	s, config := sharedServer(t)
	host := newHost(t, s, config, "reviewed").config
	pools := func(verb string) authorizationv1.ResourceAttributes {
		return authorizationv1.ResourceAttributes{Verb: verb, Group: "holdfast.io", Resource: "pools", Namespace: "default"}
	}
	hosts := func(name string) authorizationv1.ResourceAttributes {
		return authorizationv1.ResourceAttributes{Verb: "get", Group: "holdfast.io", Resource: "hosts", Name: name}
	}
	daemons := func(selector string) authorizationv1.ResourceAttributes {
		return authorizationv1.ResourceAttributes{
			Verb: "list", Group: "holdfast.io", Resource: "daemons",
			FieldSelector: &authorizationv1.FieldSelectorAttributes{RawSelector: selector},
		}
	}
	type attributes = []authorizationv1.ResourceAttributes
	for _, test := range []struct {
		name, group string
		as          client.Client
		may, mayNot attributes
	}{
		{
			"root", access.GroupAdmins, as(t, s, config, pki.Leaf{User: "root", Groups: []string{access.GroupAdmins}}),
			attributes{{Verb: "*", Group: "*", Resource: "*"}},
			nil,
		},
		{
			"jo", access.GroupViewers, as(t, s, config, pki.Leaf{User: "jo", Groups: []string{access.GroupViewers}}),
			attributes{pools("list")},
			attributes{pools("delete"), {Verb: "get", Resource: "secrets", Namespace: "default"}},
		},
		{
			access.HostUser("reviewed"), access.GroupHosts, newClient(t, host),
			attributes{hosts("reviewed"), daemons("spec.host=reviewed")},
			attributes{hosts("another"), daemons(""), daemons("spec.host!=reviewed"), pools("list")},
		},
	} {
		t.Run(test.group, func(t *testing.T) {
			who := &authenticationv1.SelfSubjectReview{}
			if err := test.as.Create(t.Context(), who); err != nil {
				t.Fatal(err)
			}
			if got := who.Status.UserInfo; got.Username != test.name || !slices.Contains(got.Groups, test.group) {
				t.Errorf("whoami: %s of %v", got.Username, got.Groups)
			}
			for i := range test.may {
				checkReview(t, test.as, &test.may[i], true)
			}
			for i := range test.mayNot {
				checkReview(t, test.as, &test.mayNot[i], false)
			}
			rules := &authorizationv1.SelfSubjectRulesReview{}
			rules.Spec.Namespace = "default"
			if err := test.as.Create(t.Context(), rules); err != nil {
				t.Fatal(err)
			}
			if len(rules.Status.ResourceRules) == 0 || len(rules.Status.NonResourceRules) == 0 {
				t.Errorf("what %s may do: %+v", test.name, rules.Status)
			}
		})
	}
}

func checkReview(t *testing.T, c client.Client, asked *authorizationv1.ResourceAttributes, want bool) {
	t.Helper()
	r := &authorizationv1.SelfSubjectAccessReview{}
	r.Spec.ResourceAttributes = asked
	if err := c.Create(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	if r.Status.Allowed != want || !want && r.Status.Reason == "" {
		t.Errorf("%+v: %+v, want allowed %v, and a reason where it is refused", asked, r.Status, want)
	}
}

// TestReviews_refused: a review that asks nothing is no question.
func TestReviews_refused(t *testing.T) {
	s, _ := sharedServer(t)
	c := newClient(t, s.Config())
	access, rules := &authorizationv1.SelfSubjectAccessReview{}, &authorizationv1.SelfSubjectRulesReview{}
	for _, review := range []client.Object{access, rules} {
		if err := c.Create(t.Context(), review); !apierrors.IsBadRequest(err) {
			t.Errorf("%T: got %v", review, err)
		}
	}
}
