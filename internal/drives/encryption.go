package drives

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// encrypt has the new disks encrypted where the group wants that. Those of a host that cannot do it are not taken.
func (o *Outcome) encrypt(hosts []api.Host) {
	if !o.Group.Spec.Encrypted {
		return
	}
	for i := range hosts {
		h := &hosts[i]
		if !slices.ContainsFunc(o.Devices, func(d api.GroupDevice) bool { return d.Host == h.Name && o.fresh[Place{d.Host, d.ID}] }) {
			continue
		}
		can := meta.FindStatusCondition(h.Status.Conditions, api.HostEncryption)
		if can != nil && can.Status == metav1.ConditionTrue {
			continue
		}
		why := "its agent does not support encryption: upgrade Holdfast there"
		if can != nil {
			why = can.Message
		}
		o.Problems = append(o.Problems, fmt.Sprintf("no disk of host %s is used, because the host cannot encrypt disks: "+
			"%s; remove the host from the placement, use self-encrypting disks, or remove 'encrypted'", h.Name, why))
		o.withdraw(h.Name)
	}
	for i := range o.Devices {
		d := &o.Devices[i]
		d.Encrypted = d.Encrypted || o.fresh[Place{d.Host, d.ID}]
	}
}
