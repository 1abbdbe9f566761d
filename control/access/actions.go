package access

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/holdfast-storage/holdfast/action"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// Facts tells what Actions are judged by.
type Facts interface {
	// Approval is the approval policy of a cluster; ok is false when there is no such cluster.
	Approval(ctx context.Context, namespace, cluster string) (policy api.Approval, ok bool, err error)
	// Host says whether there is a host, and the strictest approval policy of the clusters that have daemons on it.
	Host(ctx context.Context, host string) (policy api.Approval, ok bool, err error)
}

// ActionAdmission fills in what people may not choose for themselves: who asks for an Action or a Plan, whether it has to be
// approved, and who approved it. It refuses what makes no sense, with the reason.
type ActionAdmission struct{ Facts Facts }

var (
	_ admission.MutationInterface   = ActionAdmission{}
	_ admission.ValidationInterface = ActionAdmission{}
)

// Handles says which operations are looked at.
func (ActionAdmission) Handles(operation admission.Operation) bool {
	return operation == admission.Create || operation == admission.Update
}

// Admit fills in fields.
func (x ActionAdmission) Admit(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	resource := a.GetResource().GroupResource().String()
	if a.GetSubresource() != "" || resource != "actions."+api.Group && resource != "plans."+api.Group {
		return nil
	}
	object, err := content(a.GetObject())
	if err != nil {
		return admission.NewForbidden(a, err)
	}
	if a.GetOperation() == admission.Create {
		err = unstructured.SetNestedField(object, a.GetUserInfo().GetName(), "spec", "requester")
	}
	if err == nil && a.GetOperation() == admission.Create && resource == "plans."+api.Group {
		err = setGroups(object, a.GetUserInfo())
	}
	if err == nil && resource == "actions."+api.Group {
		err = errors.Join(times(a, object), x.approval(ctx, a, object))
	}
	if err != nil {
		return admission.NewForbidden(a, err)
	}
	return nil
}

// Bounds of the groups that a Plan has room for, as its kind declares them.
const (
	maxGroups = 256
	maxGroup  = 256
)

// setGroups records the groups of the requester of a Plan. The leader plans with the rights of all
// of them, or not at all.
func setGroups(object map[string]any, u user.Info) error {
	groups := u.GetGroups()
	if len(groups) > maxGroups {
		return fmt.Errorf("cannot record the %d groups of user %s: a Plan has room for %d; use credentials with fewer groups",
			len(groups), u.GetName(), maxGroups)
	}
	for _, g := range groups {
		if utf8.RuneCountInString(g) > maxGroup {
			return fmt.Errorf("cannot record a group of user %s with %d characters: a Plan has room for %d; "+
				"use credentials without that group", u.GetName(), utf8.RuneCountInString(g), maxGroup)
		}
	}
	return unstructured.SetNestedStringSlice(object, groups, "spec", "groups")
}

// times refuses a time that is none, in the words of its field. One that is there already stays: whoever cancels such an Action changes another field.
func times(a admission.Attributes, object map[string]any) error {
	for _, field := range []string{"timeout", "expiresAfter"} {
		said := text(object, field)
		if before, err := content(a.GetOldObject()); said == "" || err == nil && text(before, field) == said {
			continue
		}
		if d, err := time.ParseDuration(said); err != nil {
			return fmt.Errorf("spec.%s: %q is not a valid duration: use one such as 90m or 24h", field, said)
		} else if d < 0 {
			return fmt.Errorf("spec.%s: %s is negative: use a duration such as 90m, or leave it out for the default "+
				"of the kind", field, said)
		}
	}
	return nil
}

// approval sets spec.approval of a new Action, and keeps the annotation that says who set it last.
func (x ActionAdmission) approval(ctx context.Context, a admission.Attributes, object map[string]any) error {
	u := &unstructured.Unstructured{Object: object}
	if a.GetOperation() == admission.Create {
		setApprover(u, "")
		if text(object, "kind") == api.ActionServiceCommand {
			return leadersOwn(a.GetUserInfo(), object)
		}
		policy, err := x.policy(ctx, u)
		if err != nil {
			return err
		}
		if text(object, "approval") == string(api.ApprovalRequired) {
			policy = api.ApprovalRequired
		}
		if text(object, "kind") == action.DaemonLog {
			policy = api.ApprovalGranted // it changes nothing
		}
		return unstructured.SetNestedField(object, string(policy), "spec", "approval")
	}
	before, err := content(a.GetOldObject())
	if err != nil {
		return err
	}
	old := &unstructured.Unstructured{Object: before}
	if text(object, "approval") == "" {
		// Whoever applies a manifest again that says nothing of it changes nothing.
		if err := unstructured.SetNestedField(object, text(before, "approval"), "spec", "approval"); err != nil {
			return err
		}
	}
	approver := old.GetAnnotations()[api.AnnotationApprover]
	if text(before, "approval") != text(object, "approval") {
		approver = a.GetUserInfo().GetName()
	}
	setApprover(u, approver)
	return nil
}

// leadersOwn grants an Action that is part of a cluster's plan, and refuses to let anybody make one but a server.
func leadersOwn(u user.Info, object map[string]any) error {
	if !inGroup(u, GroupMasters) {
		return fmt.Errorf("only the leader creates a %s, as part of a cluster's plan", api.ActionServiceCommand)
	}
	return unstructured.SetNestedField(object, string(api.ApprovalGranted), "spec", "approval")
}

func setApprover(u *unstructured.Unstructured, who string) {
	annotations := u.GetAnnotations()
	if annotations[api.AnnotationApprover] == who {
		return
	}
	if who == "" {
		delete(annotations, api.AnnotationApprover)
	} else if annotations == nil {
		annotations = map[string]string{api.AnnotationApprover: who}
	} else {
		annotations[api.AnnotationApprover] = who
	}
	u.SetAnnotations(annotations)
}

// policy says whether an Action has to be approved. An Action of a host may take something away from every cluster there.
func (x ActionAdmission) policy(ctx context.Context, u *unstructured.Unstructured) (api.Approval, error) {
	policy := api.ApprovalGranted
	if cluster := text(u.Object, "cluster"); cluster != "" {
		p, ok, err := x.Facts.Approval(ctx, u.GetNamespace(), cluster)
		if err != nil {
			return "", err
		}
		if !ok {
			return "", fmt.Errorf("there is no storagecluster %s in namespace %s", cluster, u.GetNamespace())
		}
		policy = strictest(policy, p)
	}
	if host := text(u.Object, "host"); host != "" {
		p, ok, err := x.Facts.Host(ctx, host)
		if err != nil {
			return "", err
		}
		if !ok {
			return "", fmt.Errorf("host %s does not exist: see 'holdfast get hosts'", host)
		}
		policy = strictest(policy, p)
	}
	return policy, nil
}

func strictest(a, b api.Approval) api.Approval {
	if a == api.ApprovalRequired || b == api.ApprovalRequired {
		return api.ApprovalRequired
	}
	return api.ApprovalGranted
}

// text returns a field of a spec that is a string.
func text(object map[string]any, field string) string {
	s, _, _ := unstructured.NestedString(object, "spec", field)
	return s
}

func statusText(object map[string]any, field string) string {
	s, _, _ := unstructured.NestedString(object, "status", field)
	return s
}

// Validate refuses an approval by somebody who may not, and what comes too late.
func (x ActionAdmission) Validate(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if a.GetResource().GroupResource().String() != "actions."+api.Group || a.GetOperation() != admission.Update || a.GetSubresource() != "" {
		return nil
	}
	before, err := content(a.GetOldObject())
	if err != nil {
		return admission.NewForbidden(a, err)
	}
	after, err := content(a.GetObject())
	if err != nil {
		return admission.NewForbidden(a, err)
	}
	if err := approvalChange(a.GetUserInfo(), before, after); err != nil {
		return admission.NewForbidden(a, err)
	}
	if state := api.ActionState(statusText(before, "state")); state.Final() && text(before, "want") != text(after, "want") {
		return admission.NewForbidden(a, fmt.Errorf("cannot cancel it: it has already ended as %s", state))
	}
	return nil
}

func approvalChange(u user.Info, before, after map[string]any) error {
	was, is := text(before, "approval"), text(after, "approval")
	state := api.ActionState(statusText(before, "state"))
	switch {
	case was == is:
		return nil
	case !inGroup(u, GroupMasters) && !inGroup(u, GroupAdmins):
		return fmt.Errorf("%s may not approve or reject: only administrators may", u.GetName())
	case state.Final():
		return fmt.Errorf("cannot approve or reject it: it has already ended as %s", state)
	case state != "" && state != api.ActionPendingApproval:
		return fmt.Errorf("it is already %s: to stop it, cancel it", state)
	case was == string(api.ApprovalRejected):
		return errors.New("it was rejected: create another one")
	}
	return nil
}

// actionWrite lets a host write the status of an Action that it carries out, while it is its turn.
func actionWrite(host string, a admission.Attributes) error {
	before, err := content(a.GetOldObject())
	if err != nil {
		return err
	}
	after, err := content(a.GetObject())
	if err != nil {
		return err
	}
	state, next := api.ActionState(statusText(before, "state")), api.ActionState(statusText(after, "state"))
	switch {
	case text(before, "host") != host:
		return fmt.Errorf("the action is for host %q", text(before, "host"))
	case statusText(before, "executor") != string(api.ByAgent):
		return errors.New("the leader carries the action out, not its host")
	case state != api.ActionNew && state != api.ActionRunning:
		return fmt.Errorf("the action is %s: it is not its host's turn", state)
	case !slices.Contains([]api.ActionState{api.ActionNew, api.ActionRunning, api.ActionDone, api.ActionFailed, api.ActionCancelled}, next):
		return fmt.Errorf("a host cannot make an action %s", next)
	}
	for _, field := range []string{"executor", "approver"} {
		if statusText(before, field) != statusText(after, field) {
			return fmt.Errorf("a host cannot change status.%s of an action", field)
		}
	}
	return plainStatus(after)
}
