// Package v1alpha1 holds the resources of the API group holdfast.io.
//
// Conventions that all kinds share: every field has exactly one writer (named in the kind's comment); enums stand where a
// boolean would do today; lists are bounded and say how they merge; sizes are quantities; durations are Go durations.
//
// +kubebuilder:object:generate=true
// +groupName=holdfast.io
package v1alpha1
