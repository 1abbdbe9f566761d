package members

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	quorum "github.com/holdfast-storage/holdfast/driver/etcd"
	"github.com/holdfast-storage/holdfast/internal/words"
)

// What is done to the log in one look is bounded: to read it little, as that comes before the look,
// and to tell.
const (
	readTimeout = 2 * time.Second
	tellTimeout = 5 * time.Second
)

// Log is the log of what became of the members of etcd, and of who leads. The last event holds all
// that was told until then (quorum.Told), so that both are written at once. Its number can be taken
// once: of two servers that take themselves for the leader of etcd one reads anew what was told,
// and looks anew, before it tells what differs.
type Log struct {
	client    client.Client
	namespace string
	// events are without their texts, from the oldest to the last; empty before they were read.
	events []api.ClusterEvent
	told   quorum.Told
}

// NewLog returns the log in a namespace, with the rights of config. One goroutine may use it.
func NewLog(config *rest.Config, namespace string) (*Log, error) {
	scheme := runtime.NewScheme()
	if err := api.AddToScheme(scheme); err != nil {
		return nil, err
	}
	config = rest.CopyConfig(config)
	config.QPS = -1 // There is little to write, and a look waits for it.
	c, err := client.New(config, client.Options{Scheme: scheme})
	return &Log{client: c, namespace: namespace}, err
}

// begun says whether an event has told how the members are.
func (l *Log) begun() bool { return l.told.Members != nil }

// forget has the log be read anew.
func (l *Log) forget() { l.events, l.told = nil, quorum.Told{} }

// Read reads the log if it is not known, or another server has written to it. What the members are
// is to be looked at afterwards: it is not older then than what was told. The API reads by this
// server's member, which then knows all that was decided before.
func (l *Log) Read(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	if len(l.events) > 0 {
		err := l.client.Get(ctx, client.ObjectKeyFromObject(l.next()), &api.ClusterEvent{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("while looking for events of others: %w", err)
		}
	}
	l.forget()
	var list api.ClusterEventList
	ours := client.MatchingLabels{api.LabelCluster: quorum.ControlPlane}
	err := l.client.List(ctx, &list, client.InNamespace(l.namespace), ours)
	if err != nil {
		return fmt.Errorf("while reading the control plane's events: %w", err)
	}
	slices.SortFunc(list.Items, func(a, b api.ClusterEvent) int { return int(a.Sequence - b.Sequence) })
	for i := range list.Items {
		l.note(&list.Items[i], toldWith(&list.Items[i]))
	}
	return nil
}

// toldWith is what was told until an event and with it. Where nobody can tell, as older versions
// wrote nothing and people may write anything, nothing was told: the next event is the first one
// then.
func toldWith(e *api.ClusterEvent) (told quorum.Told) {
	if json.Unmarshal([]byte(e.Annotations[api.AnnotationTold]), &told) != nil {
		return quorum.Told{}
	}
	return told
}

// note takes an event for the last one.
func (l *Log) note(e *api.ClusterEvent, told quorum.Told) {
	l.told = told
	l.events = append(l.events, api.ClusterEvent{
		ObjectMeta: metav1.ObjectMeta{Namespace: e.Namespace, Name: e.Name}, Sequence: e.Sequence, Time: e.Time,
	})
}

// next is the event that follows, without anything that it tells.
func (l *Log) next() *api.ClusterEvent {
	n := int64(1)
	if len(l.events) > 0 {
		n = l.events[len(l.events)-1].Sequence + 1
	}
	return &api.ClusterEvent{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: l.namespace, Name: api.ClusterEventName(quorum.ControlPlane, n),
			Labels: map[string]string{api.LabelCluster: quorum.ControlPlane},
		},
		Cluster: quorum.ControlPlane, Sequence: n, Time: metav1.NowMicro(),
	}
}

// Tell writes what differs from what was told.
func (l *Log) Tell(ctx context.Context, view quorum.View, plan quorum.Plan, steps []quorum.Step) error {
	ctx, cancel := context.WithTimeout(ctx, tellTimeout)
	defer cancel()
	for {
		event, told := l.told.Next(view, plan, steps)
		if event == nil {
			return l.trim(ctx)
		}
		if err := l.add(ctx, event, told); err != nil {
			return fmt.Errorf("while telling %s of %s: %w", event.Code, event.Object, err)
		}
	}
}

// Leads tells that a server acts for all now.
func (l *Log) Leads(ctx context.Context, server string) error {
	ctx, cancel := context.WithTimeout(ctx, tellTimeout)
	defer cancel()
	if err := l.Read(ctx); err != nil {
		return err
	}
	event, told := l.told.Leads(server)
	if event == nil {
		return nil
	}
	return l.add(ctx, event, told)
}

func (l *Log) add(ctx context.Context, event *quorum.Event, told quorum.Told) error {
	text, err := json.Marshal(told)
	if err != nil {
		return err
	}
	e := l.next()
	e.Annotations = map[string]string{api.AnnotationTold: string(text)}
	e.Code, e.Object, e.Message = event.Code, event.Object, words.Cut(event.Message, api.MaxClusterEventMessage)
	if err := l.client.Create(ctx, e); err != nil {
		return err
	}
	l.note(e, told)
	return nil
}

// trim removes the oldest events, one after the other, so that the log never has a hole. The last
// one stays, for what it holds.
func (l *Log) trim(ctx context.Context) error {
	for n := len(l.events); n > 1; n-- {
		oldest := &l.events[0]
		if n <= api.MaxClusterEvents && time.Since(oldest.Time.Time) <= api.MaxClusterEventAge {
			return nil
		}
		if err := l.client.Delete(ctx, oldest); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("while removing event %s: %w", oldest.Name, err)
		}
		l.events = l.events[1:]
	}
	return nil
}
