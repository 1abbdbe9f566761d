package node

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"github.com/holdfast-storage/holdfast/csi/backend"
)

// carried is a back end whose volumes have a problem, or none.
type carried struct {
	backend.Node

	problem string
}

func (*carried) Name() string                                     { return "rbd" }
func (*carried) Way(backend.Volume) string                        { return "by a process" }
func (c *carried) Problem(context.Context, backend.Volume) string { return c.problem }

// TestWatch: each pod that uses a volume learns once what carries it, and once that the carrier has ended, also from a
// driver that was started again. A notice that failed is repeated, and a pod that is gone gets none.
func TestWatch(t *testing.T) {
	b, dir := &carried{}, t.TempDir()
	run := func() *Server { return New(Config{Dir: dir, Backends: []backend.Node{b}}) }
	s := run()
	const id = "rbd/7d1cdd13-9b5a-4f34-b69e-54a5d1ae9e3c/3/pvc-1"
	v := backend.Volume{ID: id, Dir: s.dir(id), Staging: "/staging"}
	if err := save(v); err != nil {
		t.Fatal(err)
	}
	var got []string
	var broken error
	looks := func(want ...string) {
		t.Helper()
		got = nil
		err := s.look(t.Context(), func(_ context.Context, n Notice) error {
			if broken == nil {
				got = append(got, n.Pod.Name+" "+string(n.Reason)+" "+n.Message)
			}
			return broken
		})
		slices.Sort(got)
		if !errors.Is(err, broken) || !slices.Equal(got, want) {
			t.Errorf("told %q, %v; want %q", got, err, want)
		}
	}
	looks()
	for _, name := range []string{"a", "b"} {
		pod, known := podOf(&csi.NodePublishVolumeRequest{VolumeContext: map[string]string{
			podName: name, podNamespace: "apps", podUID: "uid-" + name,
		}})
		if err := s.use(id, "/pods/"+name, pod); err != nil || !known {
			t.Fatal(err, known)
		}
	}
	looks("a VolumeCarried by a process", "b VolumeCarried by a process")
	looks()
	if err := s.unuse(id, "/pods/b"); err != nil {
		t.Fatal(err)
	}
	b.problem, broken = "it has ended", errors.New("the API server does not answer")
	looks()
	broken, s = nil, run()
	looks("a VolumeCarrierEnded it has ended")
	s = run()
	looks()
	if err := forget(v.Dir); err != nil {
		t.Fatal(err)
	}
	looks()
}

// TestPodOf_unknown: without podInfoOnMount nobody is noted.
func TestPodOf_unknown(t *testing.T) {
	if p, known := podOf(&csi.NodePublishVolumeRequest{}); known {
		t.Errorf("the pod is %+v", p)
	}
}
