package v1alpha1

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The bounds of a cluster's events: how many are kept, for how long, and how many bytes a message has.
const (
	MaxClusterEvents       = 500
	MaxClusterEventAge     = 7 * 24 * time.Hour
	MaxClusterEventMessage = 1024
)

// AnnotationTold holds, with each of the control plane's own events, what was told until then and with it.
const AnnotationTold = Group + "/told"

// ClusterEventName is the name of the event with this number. It sorts like the number.
func ClusterEventName(cluster string, sequence int64) string {
	return fmt.Sprintf("%s-%010d", cluster, sequence)
}

// ClusterEvent records one difference that an orchestration saw, or that the leader of etcd saw between its members. These two are the
// only writers. Events of a cluster are numbered without a gap; the oldest are removed when there are too many, or they are too old.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced,shortName=cev
// +kubebuilder:selectablefield:JSONPath=`.cluster`
// +kubebuilder:printcolumn:name="Time",type=date,JSONPath=`.time`
// +kubebuilder:printcolumn:name="Cluster",type=string,JSONPath=`.cluster`
// +kubebuilder:printcolumn:name="Seq",type=integer,JSONPath=`.sequence`
// +kubebuilder:printcolumn:name="Code",type=string,JSONPath=`.code`
// +kubebuilder:printcolumn:name="Object",type=string,JSONPath=`.object`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.message`
type ClusterEvent struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Cluster is the StorageCluster in the same namespace.
	Cluster string `json:"cluster"`
	// Sequence numbers the events of one cluster, from 1.
	// +kubebuilder:validation:Minimum=1
	Sequence int64 `json:"sequence"`
	// Code says what sort of difference it is; see docs/reference/events.md.
	// +kubebuilder:validation:MaxLength=63
	Code string `json:"code"`
	// Object is what changed, such as "host/h1" or "osd.3".
	// +kubebuilder:validation:MaxLength=256
	Object string `json:"object"`
	// Message says what changed and why, in a sentence.
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message"`
	// Objects are all that changed in this way, where they were many at once. Object is the cluster then.
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=256
	// +optional
	Objects []string `json:"objects,omitempty"`
	// Time is when the difference was seen.
	Time metav1.MicroTime `json:"time"`
}

// ClusterEventList is a list of ClusterEvents.
// +kubebuilder:object:root=true
type ClusterEventList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterEvent `json:"items"`
}
