package kube

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// nodesManager is the field manager of what Hosts have from Nodes: the keys of a Node's labels are
// the Node's, and those that people put on the Host stay theirs.
const nodesManager = "holdfast-nodes"

// hostOf is what a Host has from its Node.
type hostOf struct {
	name   string
	labels map[string]string
	// conditions begin with the one that tells whether the node is ready.
	conditions []metav1.Condition
}

// hostsOf are the Hosts that the nodes come to which selector selects, and why some nodes become
// none, by name.
func hostsOf(nodes []corev1.Node, selector labels.Selector) (hosts []hostOf, refused map[string]string) {
	refused = map[string]string{}
	for i := range nodes {
		node := &nodes[i]
		if !selector.Matches(labels.Set(node.Labels)) {
			continue
		}
		why := validation.IsDNS1123Label(shortOf(node.Name))
		if len(why) > 0 || len(node.Name) > validation.LabelValueMaxLength {
			refused[node.Name] = fmt.Sprintf("the name of a host has at most %d characters, as it is the value of "+
				"labels: give the node a shorter name",
				validation.LabelValueMaxLength)
			continue
		}
		hosts = append(hosts, hostOf{
			name: node.Name, labels: node.Labels,
			conditions: []metav1.Condition{nodeReady(node)},
		})
	}
	return hosts, refused
}

func shortOf(name string) string {
	short, _, _ := strings.Cut(name, ".")
	return short
}

// nodeReady is the condition of a Host that tells what Kubernetes knows of its node.
func nodeReady(node *corev1.Node) metav1.Condition {
	for _, c := range node.Status.Conditions {
		if c.Type != corev1.NodeReady {
			continue
		}
		ready := metav1.Condition{Type: api.HostNodeReady, Status: metav1.ConditionStatus(c.Status), Reason: c.Reason}
		if ready.Status != metav1.ConditionTrue { // what a ready kubelet says of itself is noise
			ready.Message = c.Message
		}
		if ready.Reason == "" {
			ready.Reason = "KubeletSaysNothing"
		}
		return ready
	}
	return metav1.Condition{
		Type: api.HostNodeReady, Status: metav1.ConditionUnknown, Reason: "NodeStatusUnknown",
		Message: "the kubelet has not reported yet",
	}
}

// nodeGone is that condition where there is no such node.
func nodeGone() metav1.Condition {
	return metav1.Condition{
		Type: api.HostNodeReady, Status: metav1.ConditionFalse, Reason: "NodeDeleted", Message: "the Node object " +
			"is gone",
	}
}

// labelsDiffer says whether the labels of a Host are not those of its node: one is missing or has
// another value, or one is there that came from the node and is not on it any more.
func labelsDiffer(h *api.Host, want hostOf) bool {
	for key, value := range want.labels {
		if have, ok := h.Labels[key]; !ok || have != value {
			return true
		}
	}
	for _, key := range ownedLabels(h) {
		if _, ok := want.labels[key]; !ok {
			return true
		}
	}
	return false
}

// ownedLabels are the keys of the labels that a Host has from its node.
func ownedLabels(h *api.Host) []string {
	for _, entry := range h.ManagedFields {
		if entry.Manager != nodesManager || entry.Subresource != "" || entry.FieldsV1 == nil {
			continue
		}
		var fields struct {
			Metadata struct {
				Labels map[string]json.RawMessage `json:"f:labels"`
			} `json:"f:metadata"`
		}
		if json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields) != nil {
			return nil // no field of this form, so nothing is known to be owned
		}
		var keys []string
		for _, key := range slices.Sorted(maps.Keys(fields.Metadata.Labels)) {
			if name, ok := strings.CutPrefix(key, "f:"); ok {
				keys = append(keys, name)
			}
		}
		return keys
	}
	return nil
}

// conditionsDiffer says whether a Host does not have the conditions of the keeper as they should be.
func conditionsDiffer(h *api.Host, want []metav1.Condition) bool {
	for _, name := range []string{api.HostNodeReady, api.HostAgentPod} {
		have := meta.FindStatusCondition(h.Status.Conditions, name)
		wanted := meta.FindStatusCondition(want, name)
		if (have == nil) != (wanted == nil) {
			return true
		}
		if have != nil && (have.Status != wanted.Status || have.Reason != wanted.Reason || have.Message != wanted.Message) {
			return true
		}
	}
	return false
}
