package kube

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/holdfast-storage/holdfast/action"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/hosttoken"
	"github.com/holdfast-storage/holdfast/internal/needs"
)

const (
	// HostsNamespace holds a ServiceAccount for each host: the identity of its agent.
	HostsNamespace = hosttoken.Namespace
	// hostsGroup are all those accounts.
	hostsGroup = "system:serviceaccounts:" + HostsNamespace
	// hostRole begins the name of the Role by which a host reads the Secrets of its daemons; the
	// host's name follows.
	hostRole = "holdfast-host-"
	// namespaceRole is the ClusterRole that hosts have in each namespace with a StorageCluster, and
	// the name of its binding.
	namespaceRole = "holdfast-hosts-in-namespace"
)

// identities are the objects that say what agents may do.
type identities struct {
	accounts []corev1.ServiceAccount
	roles    []rbacv1.Role
	bindings []rbacv1.RoleBinding
}

// identitiesOf are an account for each host, a Role that reads the Secrets which its daemons and
// commands name, for each host and namespace that has some, and the rights of all hosts in the
// namespaces of clusters.
func identitiesOf(hosts []api.Host, daemons []api.Daemon, actions []api.Action,
	clusters []api.StorageCluster,
) identities {
	var i identities
	there := map[string]bool{}
	for n := range hosts {
		there[hosts[n].Name] = true
		i.accounts = append(i.accounts, corev1.ServiceAccount{
			ObjectMeta: ours(HostsNamespace, hosts[n].Name), AutomountServiceAccountToken: new(bool),
		})
	}
	for at, names := range secretsOf(daemons, actions) {
		if there[at.host] {
			i.addRole(at, names)
		}
	}
	seen := map[string]bool{}
	for n := range clusters {
		if ns := clusters[n].Namespace; !seen[ns] {
			seen[ns] = true
			i.bindings = append(i.bindings, bindingOf(ns, namespaceRole, "ClusterRole", rbacv1.Subject{
				APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: hostsGroup,
			}))
		}
	}
	return i
}

// place is a host in a namespace.
type place struct{ namespace, host string }

// secretsOf are the names of the Secrets that each host has to read in each namespace.
func secretsOf(daemons []api.Daemon, actions []api.Action) map[place][]string {
	all := map[place][]string{}
	for n := range daemons {
		d := &daemons[n]
		at := place{d.Namespace, d.Spec.Host}
		all[at] = append(all[at], needs.Secrets(d)...)
	}
	for n := range actions {
		a := &actions[n]
		if name := action.SecretOf(a); name != "" && a.Spec.Host != "" && !a.Status.State.Final() {
			at := place{a.Namespace, a.Spec.Host}
			all[at] = append(all[at], name)
		}
	}
	for at, names := range all {
		slices.Sort(names)
		if all[at] = slices.Compact(names); len(names) == 0 {
			delete(all, at)
		}
	}
	return all
}

func (i *identities) addRole(at place, secrets []string) {
	i.roles = append(i.roles, rbacv1.Role{
		ObjectMeta: ours(at.namespace, hostRole+at.host),
		Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: secrets, Verbs: []string{"get"},
		}},
	})
	i.bindings = append(i.bindings, bindingOf(at.namespace, hostRole+at.host, "Role", rbacv1.Subject{
		Kind: rbacv1.ServiceAccountKind, Namespace: HostsNamespace, Name: at.host,
	}))
}

func bindingOf(namespace, name, kind string, who rbacv1.Subject) rbacv1.RoleBinding {
	return rbacv1.RoleBinding{
		ObjectMeta: ours(namespace, name), RoleRef: rbacv1.RoleRef{
			APIGroup: rbacv1.GroupName, Kind: kind,
			Name: name,
		}, Subjects: []rbacv1.Subject{who},
	}
}

// labelKept marks what the keeper keeps: it removes what it does not want of that.
const labelKept = "holdfast.io/kept"

func ours(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{
		"app.kubernetes.io/managed-by": "holdfast", "app.kubernetes.io/part-of": "holdfast", labelKept: "",
	}}
}
