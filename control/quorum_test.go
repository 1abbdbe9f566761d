package control_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	extensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/control"
	"github.com/holdfast-storage/holdfast/control/join"
)

func key(namespace, name string) types.NamespacedName {
	return types.NamespacedName{Namespace: namespace, Name: name}
}

// revisions are the resource versions of everything that a start might write.
func revisions(t *testing.T, s *control.Server) map[string]string {
	t.Helper()
	c, err := clientset.NewForConfig(s.Config())
	if err != nil {
		t.Fatal(err)
	}
	list, err := c.ApiextensionsV1().CustomResourceDefinitions().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, d := range list.Items {
		all[d.Name] = d.ResourceVersion
		if len(d.Status.Conditions) == 0 || d.Status.StoredVersions == nil {
			t.Errorf("%s is not served: %v", d.Name, extensionsv1.Established)
		}
	}
	hosts := &api.HostList{}
	if err := newClient(t, s.Config()).List(t.Context(), hosts); err != nil {
		t.Fatal(err)
	}
	for _, h := range hosts.Items {
		all["host "+h.Name] = h.ResourceVersion
	}
	return all
}

// TestQuorum: three servers form a quorum; it survives any one of them; one that was away comes back by itself.
func TestQuorum(t *testing.T) {
	t.Parallel()
	first := newConfig(t, t.TempDir(), "q1")
	first.Init = true
	s1, stop1 := start(t, first)
	second, third := newConfig(t, t.TempDir(), "q2"), newConfig(t, t.TempDir(), "q3")
	second.JoinToken, third.JoinToken = newToken(t, s1, join.RoleServer), newToken(t, s1, join.RoleServer)
	s2, stop2 := start(t, second)
	if got := s2.Voters(); got != 0 {
		t.Errorf("the second of two servers knows of %d members, want it to be a standby", got)
	}
	s3, _ := start(t, third)
	seated(t, 3, s1, s2, s3)

	agent, err := control.OpenAgent(timeout(t), control.AgentConfig{
		DataDir: t.TempDir(), Name: "q4", JoinToken: newToken(t, s2, join.RoleAgent), Log: first.Log,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer agent.Close()

	write := func(s *control.Server) {
		t.Helper()
		newNamespace(t, newClient(t, s.Config()))
	}
	for _, s := range []*control.Server{s1, s2, s3} {
		write(s)
	}
	stop1()
	write(s2)
	eventually(t, func() error { return agentWorks(t, agent.Config()) })

	stop2()
	eventually(t, func() error {
		if problem := readyz(t, s3); !strings.Contains(problem, "etcd has no leader: more than half of the servers [q1 q2 q3] must run") {
			return fmt.Errorf("without a quorum, the last server says why it is not ready in other words: %s", problem)
		}
		return nil
	})

	second.JoinToken = ""
	s2, _ = start(t, second)
	write(s2)
	write(s3)
	replaceLost(t, first, s2)
}

// replaceLost has the first server, which is stopped, lose its database: it gets a new one from the others. When it loses
// everything, it joins anew in its own place.
func replaceLost(t *testing.T, lost control.Config, s *control.Server) {
	t.Helper()
	if err := os.RemoveAll(filepath.Join(lost.DataDir, "etcd")); err != nil {
		t.Fatal(err)
	}
	lost.Init = false
	filled, stop := start(t, lost)
	seated(t, 3, filled, s)
	newNamespace(t, newClient(t, filled.Config()))
	stop()
	if err := os.RemoveAll(lost.DataDir); err != nil {
		t.Fatal(err)
	}
	admin := newClient(t, s.Config())
	forget := func(host string) {
		t.Helper()
		if err := admin.Delete(t.Context(), &api.Host{ObjectMeta: metav1.ObjectMeta{Name: host}}); err != nil {
			t.Fatal(err)
		}
	}
	forget(lost.Name)
	lost.JoinToken = newToken(t, s, join.RoleServer)
	back, _ := start(t, lost)
	seated(t, 3, back, s)
	newNamespace(t, newClient(t, back.Config()))

	// Nobody takes the place of a server that runs, although its host was deleted.
	forget("q3")
	thief := newConfig(t, t.TempDir(), "q3")
	thief.JoinToken = newToken(t, s, join.RoleServer)
	_, err := control.Start(timeout(t), thief)
	wantError(t, err, "the server q3 still runs at")
}

// seated waits until these servers hold a seat each, and so many members vote.
func seated(t *testing.T, voters int, servers ...*control.Server) {
	t.Helper()
	for _, s := range servers {
		eventually(t, func() error {
			if got := s.Voters(); got != voters {
				return fmt.Errorf("%s: %d members vote, want %d", s.Name(), got, voters)
			}
			return s.WhileSeated(timeout(t), func(context.Context) error { return errSeated })
		}, errSeated)
	}
}

var errSeated = errors.New("it holds a seat")

func agentWorks(t *testing.T, config *rest.Config) error {
	host := &api.Host{}
	return newClient(t, config).Get(t.Context(), key("", "q4"), host)
}

// readyz waits until the server says that it is not ready, and returns why.
func readyz(t *testing.T, s *control.Server) string {
	t.Helper()
	c, err := rest.HTTPClientFor(s.Config())
	if err != nil {
		t.Fatal(err)
	}
	defer c.CloseIdleConnections()
	var text string
	eventually(t, func() error {
		response, err := c.Get(s.Config().Host + "/readyz/etcd")
		if err != nil {
			return err
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		if text = string(body); response.StatusCode == http.StatusOK {
			return errStillReady
		}
		return err
	})
	return text
}

// eventually waits until f returns no error, or one of these.
func eventually(t *testing.T, f func() error, good ...error) {
	t.Helper()
	deadline := time.Now().Add(3 * time.Minute)
	for {
		err := f()
		if err == nil || slices.ContainsFunc(good, func(g error) bool { return errors.Is(err, g) }) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
		time.Sleep(100 * time.Millisecond)
	}
}
