// Package coreevent shows a ClusterEvent as an Event of Kubernetes' core, for tools that know no other.
package coreevent

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// Component is what core Events give as their source.
const Component = "holdfast"

// warnings are the codes that tell of something that is worse than before, or wrong.
var warnings = []string{
	"CLUSTER_DEGRADED", "CLUSTER_OFFLINE", "HEALTH_CHECK_RAISED", "NODE_DOWN", "AGENT_DOWN", "HOST_TWINS",
	"DAEMON_FAILED", "DAEMON_RESTARTED", "DEVICE_GONE", "RESOURCE_DEGRADED", "RESOURCE_OFFLINE", "ACTION_STUCK",
	"FLAPPING", "QUORUM_DEGRADED",
}

// From is the core Event that tells what a ClusterEvent does. Which UID the object has is left to the caller.
func From(e *api.ClusterEvent) *corev1.Event {
	kind := corev1.EventTypeNormal
	if slices.Contains(warnings, e.Code) {
		kind = corev1.EventTypeWarning
	}
	at := metav1.NewTime(e.Time.Time)
	return &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: e.Namespace, Name: e.Name, UID: e.UID, ResourceVersion: e.ResourceVersion,
			CreationTimestamp: e.CreationTimestamp, DeletionTimestamp: e.DeletionTimestamp, Labels: e.Labels,
		},
		InvolvedObject: involved(e), Type: kind, Reason: Reason(e.Code), Message: e.Message,
		Source: corev1.EventSource{Component: Component}, ReportingController: api.Group + "/" + Component,
		FirstTimestamp: at, LastTimestamp: at, EventTime: e.Time, Count: 1, Action: Reason(e.Code),
	}
}

// Reason is a code as a word such as DaemonFailed.
func Reason(code string) string {
	var b strings.Builder
	for _, word := range strings.Split(strings.ToLower(code), "_") {
		if word != "" {
			b.WriteString(strings.ToUpper(word[:1]) + word[1:])
		}
	}
	return b.String()
}

// involved is the object that an event is about. What is no object of the API is a part of one: a device belongs to its
// Host, a health check to its StorageCluster.
func involved(e *api.ClusterEvent) corev1.ObjectReference {
	word, name, _ := strings.Cut(e.Object, "/")
	ref := corev1.ObjectReference{
		Kind: kinds[word], APIVersion: api.GroupVersion.String(), Namespace: e.Namespace, Name: name,
	}
	switch {
	case word == "host":
		ref.Namespace = ""
		if host, device, ok := strings.Cut(name, "/"); ok {
			ref.Name, ref.FieldPath = host, "status.devices{"+device+"}"
		}
	case ref.Kind == "" && controlPlane(e): // it is no object
		return corev1.ObjectReference{Kind: "Namespace", APIVersion: "v1", Name: e.Namespace}
	case ref.Kind == "":
		ref.Kind, ref.Name = "StorageCluster", e.Cluster
	}
	return ref
}

// controlPlane says whether an event is one of the control plane's own.
func controlPlane(e *api.ClusterEvent) bool { return e.Annotations[api.AnnotationTold] != "" }

// kinds are those that the words of an event's object stand for.
var kinds = kindWords()

func kindWords() map[string]string {
	words := map[string]string{"node": "StorageNode", "host": "Host", "daemon": "Daemon", "action": "Action"}
	for _, list := range api.ResourceLists() {
		kind := list.NewResource().ResourceKind()
		words[strings.ToLower(kind)] = kind
	}
	return words
}
