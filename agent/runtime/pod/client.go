package pod

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	kwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// callTimeout bounds one request to the API server.
const callTimeout = 30 * time.Second

// pods are the pods of one node, as the API server has them.
type pods struct {
	client client.WithWatch
	node   string
	log    *slog.Logger
	// managedBy is the label of pods of one runtime, namespace where they are; empty: anywhere.
	managedBy, namespace string
}

// newPods asks the server nothing: it knows the one kind that it needs by itself.
func newPods(of *Config) (pods, error) {
	scheme := kruntime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		return pods{}, err
	}
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{corev1.SchemeGroupVersion})
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Pod"), meta.RESTScopeNamespace)
	cfg := rest.CopyConfig(of.REST)
	cfg.ContentType, cfg.AcceptContentTypes = kruntime.ContentTypeJSON, kruntime.ContentTypeJSON // few objects, readable
	c, err := client.NewWithWatch(cfg, client.Options{Scheme: scheme, Mapper: mapper})
	return pods{client: c, node: of.Node, log: of.Log, managedBy: of.ManagedBy, namespace: of.Namespace}, err
}

func (a pods) create(ctx context.Context, pod *corev1.Pod) (*corev1.Pod, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	got := pod.DeepCopy()
	if err := a.client.Create(ctx, got); err != nil {
		return nil, fmt.Errorf("while making the pod %s in namespace %s: %w", pod.Name, pod.Namespace,
			allowed(pod.Namespace, err))
	}
	return got, nil
}

// allowed adds the next step where the API server forbids a pod: pod security has no reason of its
// own.
func allowed(namespace string, err error) error {
	if !apierrors.IsForbidden(err) {
		return err
	}
	return fmt.Errorf("%w; if PodSecurity forbids it, "+
		"run 'kubectl label namespace %s --overwrite pod-security.kubernetes.io/enforce=privileged'", err, namespace)
}

func (a pods) get(ctx context.Context, namespace, name string) (*corev1.Pod, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	got := &corev1.Pod{}
	err := a.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, got)
	return got, err
}

// delete asks for the end of a pod, and of no other one of its name. gone says that there is none.
func (a pods) delete(ctx context.Context, pod *corev1.Pod) (gone bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	err = a.client.Delete(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}},
		client.Preconditions{UID: &pod.UID}, client.GracePeriodSeconds(graceIn(pod)))
	if isGone(err) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("while deleting the pod %s: %w", pod.Name, err)
	}
	return false, nil
}

// isGone says whether the API server answered that this very pod does not exist.
func isGone(err error) bool { return apierrors.IsNotFound(err) || apierrors.IsConflict(err) }

// annotate notes something at a pod; nothing where it is gone.
func (a pods) annotate(ctx context.Context, pod *corev1.Pod, key, value string) (*corev1.Pod, error) {
	patch := map[string]any{"metadata": map[string]any{"uid": pod.UID, "annotations": map[string]string{key: value}}}
	return a.patch(ctx, pod, patch, func(ctx context.Context, into *corev1.Pod, p client.Patch) error {
		return a.client.Patch(ctx, into, p)
	})
}

// setServing writes the readiness gate; nothing where the pod is gone.
func (a pods) setServing(ctx context.Context, pod *corev1.Pod, serves bool) (*corev1.Pod, error) {
	c := corev1.PodCondition{
		Type: ConditionServing, Status: corev1.ConditionFalse, Reason: "Starting", LastTransitionTime: metav1.Now(),
	}
	if serves {
		c.Status, c.Reason = corev1.ConditionTrue, "Serving"
	}
	patch := map[string]any{
		"metadata": map[string]any{"uid": pod.UID}, "status": map[string]any{"conditions": []corev1.PodCondition{c}},
	}
	return a.patch(ctx, pod, patch, func(ctx context.Context, into *corev1.Pod, p client.Patch) error {
		return a.client.Status().Patch(ctx, into, p)
	})
}

func (a pods) patch(
	ctx context.Context, pod *corev1.Pod, patch any, send func(context.Context, *corev1.Pod, client.Patch) error,
) (*corev1.Pod, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	data, err := json.Marshal(patch)
	if err != nil {
		return nil, err
	}
	got := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}}
	if err = send(ctx, got, client.RawPatch(types.StrategicMergePatchType, data)); err == nil {
		return got, nil
	}
	// To another pod of the name the answer is that its UID cannot be changed.
	there, found := a.get(ctx, pod.Namespace, pod.Name)
	if apierrors.IsNotFound(found) || found == nil && there.UID != pod.UID {
		return nil, nil //nolint:nilnil // it is gone, and the watch says so
	}
	return nil, fmt.Errorf("while writing to the pod %s: %w", pod.Name, err)
}

// serving says whether the readiness gate of a pod is open.
func serving(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == ConditionServing {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// follow keeps a store up to date until ctx ends. It tries again, soon and then less often, while
// the server is away.
func (a pods) follow(ctx context.Context, into cache.ReflectorStore) {
	mine := []client.ListOption{
		client.MatchingFields{"spec.nodeName": a.node},
		client.MatchingLabels{labelManaged: a.managedBy, labelHost: labelValue(a.node)},
		client.InNamespace(a.namespace),
	}
	lw := cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, opts metav1.ListOptions) (kruntime.Object, error) {
			ctx, cancel := context.WithTimeout(ctx, callTimeout)
			defer cancel()
			opts.ResourceVersion = "" // what holds now, and not what a server has in its cache
			list := &corev1.PodList{}
			err := a.client.List(ctx, list, append(mine, &client.ListOptions{Raw: &opts})...)
			if err != nil && ctx.Err() == nil {
				a.log.Warn("cannot read the pods of this node; retrying", "node", a.node, "error", err)
			}
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, opts metav1.ListOptions) (kwatch.Interface, error) {
			return a.client.Watch(ctx, &corev1.PodList{}, append(mine, &client.ListOptions{Raw: &opts})...)
		},
	}, plainList{})
	cache.NewReflectorWithOptions(lw, &corev1.Pod{}, into, cache.ReflectorOptions{
		Name:    "pods of " + a.node,
		Backoff: &wait.Backoff{Duration: 200 * time.Millisecond, Cap: 5 * time.Second, Steps: 6, Factor: 2, Jitter: 0.5},
	}).RunWithContext(ctx)
}

// plainList asks for a list and then a watch: to stream the list gains nothing with the few pods of
// one node.
type plainList struct{}

// IsWatchListSemanticsUnSupported is what client-go looks for.
func (plainList) IsWatchListSemanticsUnSupported() bool { return true }

// graceIn is how long a pod may take to end. It is never 0, with which the API server would take
// the pod away while its process runs.
func graceIn(pod *corev1.Pod) int64 {
	return max(1, ptr.Deref(pod.Spec.TerminationGracePeriodSeconds, corev1.DefaultTerminationGracePeriodSeconds))
}
