package pod

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"

	"github.com/holdfast-storage/holdfast/agent/runtime"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// What pods of daemons carry.
const (
	labelManaged = "app.kubernetes.io/managed-by"
	labelHost    = "holdfast.io/host"
	labelType    = "holdfast.io/type"
	labelID      = "holdfast.io/id"
	// annotationName is the name of the process, annotationProcess the hash of what it was made
	// from.
	annotationName    = "holdfast.io/name"
	annotationProcess = "holdfast.io/process"
	// annotationImage is the image that was asked for, which the cluster may take from elsewhere.
	annotationImage = "holdfast.io/image"
	// annotationRestarts counts the ends that pods before this one had.
	annotationRestarts = "holdfast.io/restarts"
	// AnnotationStop says since when the pod is to end, because the agent asked for it.
	AnnotationStop = "holdfast.io/stop"
	// ConditionServing is the readiness gate: the daemon does its part.
	ConditionServing corev1.PodConditionType = "holdfast.io/serving"
)

// podOf is the pod of a process. restarts is how often pods before it ended.
func podOf(cfg *Config, p runtime.Process, restarts int) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: p.Of.Namespace, Name: p.Of.Name, Labels: labelsOf(cfg, p.Of),
			Annotations: map[string]string{
				annotationName: p.Name, annotationProcess: hashOf(p),
				annotationImage: cfg.Image, annotationRestarts: strconv.Itoa(restarts),
			},
			OwnerReferences: ownersOf(cfg.Node, p.Of),
		},
		Spec: corev1.PodSpec{
			NodeName:    cfg.Node, // no scheduler: it is pinned, also to a node that is cordoned
			HostNetwork: true, HostPID: cfg.HostPID, DNSPolicy: corev1.DNSClusterFirstWithHostNet,
			ShareProcessNamespace:         ptr.To(!cfg.HostPID), // the pause process reaps what a daemon leaves
			RestartPolicy:                 restartsOf(p),
			TerminationGracePeriodSeconds: ptr.To(graceOf(p)),
			PriorityClassName:             cfg.PriorityClass,
			Tolerations:                   []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
			AutomountServiceAccountToken:  ptr.To(false), EnableServiceLinks: ptr.To(false),
			ReadinessGates:   gatesOf(p),
			ImagePullSecrets: secretsOf(cfg.PullSecrets),
			SecurityContext: &corev1.PodSecurityContext{
				// Without it SELinux refuses host paths to containers that are not privileged.
				SELinuxOptions: &corev1.SELinuxOptions{Type: "spc_t"},
			},
		},
	}
	mounts, volumes := placesOf(p)
	pod.Spec.Volumes = volumes
	pod.Spec.Containers = []corev1.Container{{
		Name: containerOf(p.Of), Image: cfg.Image, ImagePullPolicy: cfg.PullPolicy,
		Command: literally(p.Command), WorkingDir: p.Dir,
		Env:                      []corev1.EnvVar{{Name: "HOLDFAST_DAEMON", Value: p.Name}},
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
		SecurityContext:          securityOf(p.Needs), VolumeMounts: mounts,
	}}
	return pod
}

func restartsOf(p runtime.Process) corev1.RestartPolicy {
	if p.Once {
		return corev1.RestartPolicyNever
	}
	return corev1.RestartPolicyAlways
}

// gatesOf are the readiness gates of a pod. Nobody says of a process that runs once whether it serves.
func gatesOf(p runtime.Process) []corev1.PodReadinessGate {
	if p.Once {
		return nil
	}
	return []corev1.PodReadinessGate{{ConditionType: ConditionServing}}
}

// literally has the kubelet take a command as it is: it puts variables in the place of $(NAME), and $ in
// that of $$.
func literally(command []string) []string {
	out := make([]string, len(command))
	for i, arg := range command {
		out[i] = strings.ReplaceAll(arg, "$", "$$")
	}
	return out
}

// hashOf tells what a process was made from.
func hashOf(p runtime.Process) string {
	text, err := json.Marshal(p)
	if err != nil {
		panic(err) // it has strings and numbers alone
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

func labelsOf(cfg *Config, of runtime.Owner) map[string]string {
	return map[string]string{
		labelManaged: cfg.ManagedBy, labelHost: labelValue(cfg.Node), api.LabelCluster: labelValue(of.Cluster),
		labelType: labelValue(of.Type), labelID: labelValue(of.ID),
	}
}

// labelValue is a text that a label may have: the text itself, or a hash of it.
func labelValue(text string) string {
	if len(validation.IsValidLabelValue(text)) == 0 {
		return text
	}
	sum := sha256.Sum256([]byte(text))
	return "sha256-" + hex.EncodeToString(sum[:16])
}

// ownersOf is the Daemon, or the Node, with which its pod goes. To block its deletion would need
// rights on its finalizers.
func ownersOf(node string, of runtime.Owner) []metav1.OwnerReference {
	if of.UID == "" {
		return nil
	}
	owner := metav1.OwnerReference{
		APIVersion: api.GroupVersion.String(), Kind: "Daemon", Name: of.Name, UID: types.UID(of.UID),
		Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(false),
	}
	if of.Node {
		owner.APIVersion, owner.Kind, owner.Name = corev1.SchemeGroupVersion.String(), "Node", node
	}
	return []metav1.OwnerReference{owner}
}

// graceOf is StopTimeout in seconds. Zero would take the pod from the API while its process runs.
func graceOf(p runtime.Process) int64 {
	return max(1, int64((p.StopTimeout+time.Second-1)/time.Second))
}

func secretsOf(names []string) (out []corev1.LocalObjectReference) {
	for _, name := range names {
		out = append(out, corev1.LocalObjectReference{Name: name})
	}
	return out
}

func containerOf(of runtime.Owner) string {
	if len(validation.IsDNS1123Label(of.Type)) == 0 {
		return of.Type
	}
	return "daemon"
}

func securityOf(n runtime.Needs) *corev1.SecurityContext {
	if n.Privileged {
		return &corev1.SecurityContext{Privileged: ptr.To(true), RunAsUser: ptr.To(int64(0))}
	}
	var add []corev1.Capability
	for _, c := range n.Capabilities {
		add = append(add, corev1.Capability(strings.TrimPrefix(c, "CAP_")))
	}
	return &corev1.SecurityContext{
		RunAsUser: ptr.To(int64(0)), AllowPrivilegeEscalation: ptr.To(false),
		Capabilities:   &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}, Add: add},
		SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}
}

// placesOf are the directories of the host that a process has, each at the same place. There is no
// emptyDir: 'kubectl drain' refuses a pod with one.
func placesOf(p runtime.Process) (mounts []corev1.VolumeMount, volumes []corev1.Volume) {
	for i, d := range directoriesOf(p) {
		name, kind := volumeName(d.Path, i), corev1.HostPathDirectory
		if d.Make {
			kind = corev1.HostPathDirectoryOrCreate
		}
		m := corev1.VolumeMount{Name: name, MountPath: d.Path, ReadOnly: d.ReadOnly}
		switch d.Mounts {
		case runtime.MountsFromHost:
			m.MountPropagation = ptr.To(corev1.MountPropagationHostToContainer)
		case runtime.MountsBoth:
			m.MountPropagation = ptr.To(corev1.MountPropagationBidirectional)
		}
		mounts = append(mounts, m)
		volumes = append(volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
			HostPath: &corev1.HostPathVolumeSource{Path: d.Path, Type: ptr.To(kind)},
		}})
	}
	return mounts, volumes
}

// directoriesOf is what a process needs, and its own directories unless they lie in one of those.
func directoriesOf(p runtime.Process) []runtime.Directory {
	out := slices.Clone(p.Needs.Directories)
	add := func(d runtime.Directory) {
		if d.Path != "" && !slices.ContainsFunc(out, func(o runtime.Directory) bool { return holds(o, d) }) {
			out = append(out, d)
		}
	}
	add(runtime.Directory{Path: p.Dir, Mounts: runtime.MountsFromHost})
	add(runtime.Directory{Path: p.RunDir, Make: true})
	if p.Needs.Devices {
		add(runtime.Directory{Path: "/dev"})
		add(runtime.Directory{Path: "/run/udev", Make: true, ReadOnly: true})
	}
	return out
}

// holds says whether one directory comes with another one. What is made is made by the kubelet, so
// that it comes with itself alone.
func holds(outer, inner runtime.Directory) bool {
	return outer.Path == inner.Path || !inner.Make && strings.HasPrefix(inner.Path, outer.Path+"/")
}

// volumeName is readable, and its own: i is the place in the list.
func volumeName(path string, i int) string {
	base := strings.Trim(strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, strings.ToLower(filepath.Base(path))), "-")
	name := strconv.Itoa(i) + "-" + base
	if len(name) > validation.DNS1123LabelMaxLength {
		name = strings.TrimRight(name[:validation.DNS1123LabelMaxLength], "-")
	}
	return strings.TrimRight(name, "-")
}
