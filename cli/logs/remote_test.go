package logs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/holdfast-storage/holdfast/action"
	agentlogs "github.com/holdfast-storage/holdfast/agent/logs"
	"github.com/holdfast-storage/holdfast/agent/runtime/logfile"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/cli/exit"
)

// site is an API with an agent: the real handler carries out the actions whenever they are read.
type site struct {
	client.Client
	t       *testing.T
	host    api.Host
	daemon  *api.Daemon
	path    string
	handler action.Handler

	mu      sync.Mutex
	actions map[string]*api.Action
	created int
	// refuses is the answer to the creation of an action, and down to all requests.
	refuses, down error
	// deaf is set while the agent does nothing.
	deaf bool
}

var _ action.Recorder = recorder{}

func newSite(t *testing.T) *site {
	d := &api.Daemon{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "ceph-osd-4"},
		Spec:       api.DaemonSpec{Host: "h2", Cluster: "ceph"},
	}
	s := &site{t: t, daemon: d, actions: map[string]*api.Action{}}
	s.path = write(t, t.TempDir(), "default.ceph-osd-4", text)
	s.host.Name = "h2"
	s.handler = agentlogs.New(agentlogs.Host{
		Name: "h2", File: func(types.NamespacedName) string { return s.path },
		Daemon: func(types.NamespacedName) (*api.Daemon, bool) { return d, true },
	})
	return s
}

func (s *site) Create(_ context.Context, o client.Object, _ ...client.CreateOption) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := errors.Join(s.refuses, s.down); err != nil {
		return err
	}
	s.created++
	a := o.(*api.Action)
	a.Name, a.UID = fmt.Sprint("log-", s.created), types.UID(fmt.Sprint("uid-", s.created))
	is := a.DeepCopy()
	is.Status.State = api.ActionNew
	s.actions[a.Name] = is
	return nil
}

func (s *site) Get(ctx context.Context, key client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down != nil {
		return s.down
	}
	if h, ok := o.(*api.Host); ok {
		s.host.DeepCopyInto(h)
		return nil
	}
	is := s.actions[key.Name]
	if is == nil {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "actions"}, key.Name)
	}
	if !s.deaf {
		turn, err := action.Execute(ctx, s.handler, recorder{s}, is)
		if err != nil {
			return err
		}
		is = turn.Action
	}
	is.DeepCopyInto(o.(*api.Action))
	return nil
}

func (s *site) Delete(_ context.Context, o client.Object, _ ...client.DeleteOption) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.actions, o.GetName())
	return nil
}

func (s *site) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

// left is how many actions there are.
func (s *site) left() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.actions)
}

// recorder is how the agent writes. The site holds the mutex.
type recorder struct{ *site }

func (r recorder) Get(_ context.Context, a *api.Action) (*api.Action, error) {
	return r.actions[a.Name], nil
}

func (r recorder) PutStatus(_ context.Context, a *api.Action) (*api.Action, error) {
	r.actions[a.Name] = a.DeepCopy()
	return a, nil
}

// output is what a command prints; others read it meanwhile.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

func (o *output) await(t *testing.T, text string) {
	t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for ; !strings.Contains(o.String(), text); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("no %q in %s", text, o.String())
		}
	}
}

// elsewhere is the command on a machine that has no daemon.
func (s *site) elsewhere(out, problems *output) Home {
	dir := s.t.TempDir()
	return Home{
		Connect: func() (client.Client, error) { return s, nil },
		Find: func(context.Context, client.Client, string) (*api.Daemon, error) {
			return s.daemon, nil
		},
		Namespace: func() string { return "default" }, DataDir: func() string { return dir },
		Out: out, Err: problems,
		waits: waits{
			answer: 300 * time.Millisecond, line: 100 * time.Millisecond, pause: time.Millisecond,
			patience: 2 * time.Second,
		},
	}
}

func TestRemote(t *testing.T) {
	s := newSite(t)
	var out, problems output
	h := s.elsewhere(&out, &problems)
	if err := h.print(t.Context(), "osd.4", options{tail: 1}); err != nil {
		t.Fatal(err)
	}
	if out.String() != "[2026-11-27 03:07:00.123456 +0000] I [glusterd]\n" || problems.String() != "" || s.left() > 0 {
		t.Errorf("%s%s, %d actions", out.String(), problems.String(), s.left())
	}
	f, err := os.OpenFile(s.path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(f, strings.Repeat("filler\n", 10000), "the end\n")
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if err := h.print(t.Context(), "osd.4", options{tail: -1}); err != nil {
		t.Fatal(err)
	}
	if !strings.HasSuffix(out.String(), "the end\n") ||
		!strings.Contains(problems.String(), "sudo holdfast logs osd.4") {
		t.Errorf("%d bytes; %s", len(out.String()), problems.String())
	}
}

// TestRemote_follow: lines come in order over a rotation and while the API is away, and at the end
// no action is left.
func TestRemote_follow(t *testing.T) {
	s := newSite(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var out, problems output
	ended := make(chan error, 1)
	go func() { ended <- s.elsewhere(&out, &problems).print(ctx, "osd.4", options{tail: 0, follow: true}) }()
	say := func(text string) {
		f, err := os.OpenFile(s.path, os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprint(f, text)
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	first := func() bool { s.mu.Lock(); defer s.mu.Unlock(); return s.created > 1 }
	for deadline := time.Now().Add(30 * time.Second); !first(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it does not follow")
		}
	}
	say("line one\n")
	out.await(t, "line one\n")
	say(strings.Repeat("filler\n", 20000) + "line two\n")
	s.set(func() {
		if err := logfile.Rotate(s.path, logfile.Limits{Size: 4096, Keep: 2}); err != nil {
			t.Error(err)
		}
	})
	say("line three\n")
	out.await(t, "line three\n")
	s.set(func() { s.down = errors.New("connection refused") })
	problems.await(t, "connection refused; retrying")
	s.set(func() { s.down = nil })
	say("line four\n")
	out.await(t, "line four\n")
	want := "line one\n" + strings.Repeat("filler\n", 20000) + "line two\nline three\nline four\n"
	if out.String() != want {
		t.Errorf("%d bytes of %d", len(out.String()), len(want))
	}
	cancel()
	if err := <-ended; err != nil || s.left() > 0 {
		t.Errorf("%v, %d actions are left", err, s.left())
	}
}

func TestRemote_refused(t *testing.T) {
	silent := metav1.Condition{
		Type: api.HostAgentConnected, Status: metav1.ConditionFalse,
		LastTransitionTime: metav1.NewTime(now),
	}
	for name, c := range map[string]struct {
		set  func(*site)
		has  string
		code int
		// asked is whether an action may have been created.
		asked bool
	}{
		"a viewer": {func(s *site) {
			s.refuses = apierrors.NewForbidden(schema.GroupResource{Resource: "actions"}, "", errors.New("may read"))
		}, "use the kubeconfig of an administrator, or run 'ssh h2 sudo holdfast logs osd.4'", exit.Refused, false},
		"disconnected": {
			func(s *site) { s.host.Status.Conditions = []metav1.Condition{silent} },
			"agent of host h2 is disconnected since 2026-11-27T03:10:00Z; run 'ssh h2 sudo holdfast logs osd.4'", 0,
			false,
		},
		"a pod": {
			func(s *site) { s.host.Status.Runtime = api.RuntimePod }, "'kubectl -n default logs ceph-osd-4'", 0,
			false,
		},
		"no log yet": {func(s *site) {
			if err := os.Remove(s.path); err != nil {
				s.t.Fatal(err)
			}
		}, "has no log on host h2 yet", exit.Refused, true},
		"no answer": {func(s *site) { s.deaf = true }, "agent of host h2 does not answer; run 'ssh h2", 0, true},
		"an old agent": {
			func(s *site) { s.handler = action.Unknown(action.DaemonLog, "v1", nil) }, "upgrade Holdfast",
			exit.Refused, true,
		},
		"the API is away": {
			func(s *site) { s.down = errors.New("connection refused") }, "connection refused", 0,
			false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			s.daemon.Status.LastExit = &api.DaemonExit{Log: "assert failed", Reason: "signal: aborted"}
			c.set(s)
			var out, problems output
			err := s.elsewhere(&out, &problems).print(t.Context(), "osd.4", options{tail: -1, follow: true})
			if err == nil || !strings.Contains(err.Error(), c.has) || !strings.Contains(out.String(), "assert failed") {
				t.Errorf("%v\n%s", err, out.String())
			}
			var coded interface{ ExitCode() int }
			if errors.As(err, &coded) != (c.code != 0) || coded != nil && coded.ExitCode() != c.code {
				t.Errorf("%v has the exit code %v", err, coded)
			}
			if s.left() > 0 || c.asked != (s.created > 0) {
				t.Errorf("%d actions were created, %d are left", s.created, s.left())
			}
		})
	}
}

// TestRemote_disconnects: an agent that is disconnected meanwhile ends it at once.
func TestRemote_disconnects(t *testing.T) {
	s := newSite(t)
	var out, problems output
	h := s.elsewhere(&out, &problems)
	h.waits.answer = time.Hour
	ended := make(chan error, 1)
	s.deaf = true
	go func() { ended <- h.print(t.Context(), "osd.4", options{tail: -1}) }()
	for s.left() == 0 {
		time.Sleep(time.Millisecond)
	}
	s.set(func() {
		s.host.Status.Conditions = []metav1.Condition{{Type: api.HostAgentConnected, Status: metav1.ConditionFalse}}
	})
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "is disconnected") || s.left() > 0 {
		t.Errorf("%v, %d actions are left", err, s.left())
	}
}
