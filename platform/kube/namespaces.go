package kube

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
)

// labelPodSecurity says which pods a namespace may have. Pods of daemons have host paths and the
// host's network, which the levels baseline and restricted refuse.
const labelPodSecurity = "pod-security.kubernetes.io/enforce"

// Forbids is why the pods of daemons are refused in a namespace, nil where they are not.
func Forbids(ns *corev1.Namespace) *engine.Prohibition {
	level := ns.Labels[labelPodSecurity]
	if level != "baseline" && level != "restricted" {
		return nil
	}
	return &engine.Prohibition{Reason: api.AllowedNamespaceForbidsPods, Message: fmt.Sprintf(
		"namespace %[1]s refuses the pods of daemons, which use the host's network and directories (%[2]s is %[3]s): "+
			"run 'kubectl label namespace %[1]s %[2]s=privileged --overwrite'", ns.Name, labelPodSecurity, level)}
}
