package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TermName is the name of the one Term, in the namespace holdfast-system.
const TermName = "leader"

// Term names the operator that leads in a Kubernetes cluster. An admission policy compares the
// token that each write of an operator carries with it, so that an operator that was replaced
// writes nothing. There is one, holdfast-system/leader; only the operator writes it.
// Holdfast's own servers have none: etcd compares the token there.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced
// +kubebuilder:printcolumn:name="Leader",type=string,JSONPath=`.spec.leader`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Term struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec TermSpec `json:"spec"`
}

// TermSpec is what the policy compares.
type TermSpec struct {
	// Leader is the token of the operator that leads: the holder of the Lease holdfast-system/leader.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Leader string `json:"leader"`
}

// TermList is a list of Terms.
// +kubebuilder:object:root=true
type TermList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Term `json:"items"`
}
