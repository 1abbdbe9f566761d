package doctor

import (
	"cmp"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// leaseSlack is how long after its end a Lease of an operator may still be renewed, by clocks that
// differ.
const leaseSlack = 2 * maxSkew

// ofServers is a check of what Holdfast's own servers have. In Kubernetes it finds nothing.
func ofServers(check func(*Facts) []Finding) func(*Facts) []Finding {
	return func(f *Facts) []Finding {
		if f.Kubernetes {
			return nil
		}
		return check(f)
	}
}

// checkOperator looks whether an operator leads. Outside of Kubernetes it finds nothing.
func checkOperator(f *Facts) []Finding {
	const look = "look at the operators: " +
		"'kubectl -n holdfast-system get pods -l app.kubernetes.io/name=holdfast-operator', and their logs; " +
		"storage daemons keep running"
	switch {
	case !f.Kubernetes:
		return nil
	case apierrors.IsForbidden(f.LeaseErr):
		message := fmt.Sprintf("you may not read who leads; ask an administrator: %v", f.LeaseErr)
		return []Finding{{Level: Skipped, Message: message}}
	case apierrors.IsNotFound(f.LeaseErr):
		return finding(Fail, "no operator has led yet", look)
	case f.LeaseErr != nil:
		return finding(Fail, fmt.Sprintf("it is not known whether an operator leads: %v", f.LeaseErr),
			"run 'holdfast doctor' again")
	}
	spec := f.Lease.Spec
	holder := ptr.Deref(spec.HolderIdentity, "")
	renewed := ptr.Deref(spec.RenewTime, metav1.NewMicroTime(f.Lease.CreationTimestamp.Time))
	ends := renewed.Add(time.Duration(ptr.Deref(spec.LeaseDurationSeconds, 0)) * time.Second)
	if holder == "" || f.Now.After(ends.Add(leaseSlack)) {
		return finding(Fail, fmt.Sprintf("no operator leads: %s renewed the Lease last, %s ago",
			cmp.Or(holder, "an operator that has ended"), roughly(f.Now.Sub(renewed.Time))), look)
	}
	return ok("the operator %s leads", holder)
}
