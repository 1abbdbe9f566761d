package control

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/control/access"
	quorum "github.com/holdfast-storage/holdfast/driver/etcd"
)

// ControlPlane is the name that the control plane's own events go by, in access.SystemNamespace.
const ControlPlane = "control-plane"

// maxQuorumEvents bounds the log; the members of etcd change seldom.
const maxQuorumEvents = 200

// quorumEvents is the log of what became of the members of etcd. Only the leader of etcd writes it.
type quorumEvents struct{ client client.Client }

func newQuorumEvents(config *rest.Config) (*quorumEvents, error) {
	scheme := runtime.NewScheme()
	if err := api.AddToScheme(scheme); err != nil {
		return nil, err
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	return &quorumEvents{c}, err
}

// add appends an event. A number that another leader took is left to it.
func (l *quorumEvents) add(ctx context.Context, code, object, message string) error {
	for range 5 {
		last, err := l.trim(ctx)
		if err != nil {
			return err
		}
		err = l.client.Create(ctx, &api.ClusterEvent{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: access.SystemNamespace, Name: ControlPlane + "-" + fmt.Sprintf("%010d", last+1),
				Labels: map[string]string{api.LabelCluster: ControlPlane},
			},
			Cluster: ControlPlane, Sequence: last + 1, Code: code, Object: object, Message: message, Time: metav1.NowMicro(),
		})
		if !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	return fmt.Errorf("event %s of %s: others write as well", code, object)
}

// trim removes the oldest events and returns the last number.
func (l *quorumEvents) trim(ctx context.Context) (last int64, err error) {
	var list api.ClusterEventList
	err = l.client.List(ctx, &list, client.InNamespace(access.SystemNamespace), client.MatchingLabels{api.LabelCluster: ControlPlane})
	if err != nil {
		return 0, fmt.Errorf("while reading the control plane's events: %w", err)
	}
	slices.SortFunc(list.Items, func(a, b api.ClusterEvent) int { return int(a.Sequence - b.Sequence) })
	for i := range max(0, len(list.Items)-maxQuorumEvents) {
		if err := l.client.Delete(ctx, &list.Items[i]); client.IgnoreNotFound(err) != nil {
			return 0, fmt.Errorf("while removing old events: %w", err)
		}
	}
	if n := len(list.Items); n > 0 {
		last = list.Items[n-1].Sequence
	}
	return last, nil
}

// tell writes an event; that it could not is logged, and holds nothing up.
func (q *quorumManager) tell(ctx context.Context, code, object, message string) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if err := q.events.add(ctx, code, object, message); err != nil && ctx.Err() == nil {
		q.log.Warn("an event of the quorum could not be written", "code", code, "error", err)
	}
}

func (q *quorumManager) tellStep(ctx context.Context, step *quorum.Step) {
	code := map[quorum.Verb]string{
		quorum.Add: "QUORUM_MEMBER_ADDED", quorum.Promote: "QUORUM_MEMBER_PROMOTED", quorum.Remove: "QUORUM_MEMBER_REMOVED",
	}[step.Verb]
	if step.Verb == quorum.Promote && step.Replaces != "" {
		code = "QUORUM_MEMBER_REPLACED"
		step.Reason = "it takes the place of " + step.Replaces
	}
	q.tell(ctx, code, "host/"+step.Server, step.Reason)
}

// tellHealth tells when the members do not all answer, and when they do again. What a new leader finds as it should be is not
// told.
func (q *quorumManager) tellHealth(ctx context.Context, was, is quorum.Plan) {
	switch {
	case was.Degraded == is.Degraded || was.Want == 0 && is.Degraded == "":
	case is.Degraded != "":
		q.tell(ctx, "QUORUM_DEGRADED", "cluster/"+ControlPlane, is.Degraded+"; "+survives(is.Spare))
	default:
		q.tell(ctx, "QUORUM_HEALTHY", "cluster/"+ControlPlane, "all members of etcd that are wanted answer; "+survives(is.Spare))
	}
}

func survives(spare int) string {
	switch {
	case spare <= 0:
		return "the control plane survives no further failure"
	case spare == 1:
		return "the control plane survives one more failure"
	}
	return strings.Join([]string{"the control plane survives", strconv.Itoa(spare), "more failures"}, " ")
}
