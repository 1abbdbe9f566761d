package logaction

import (
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/holdfast-storage/holdfast/action"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

func TestOf(t *testing.T) {
	d := &api.Daemon{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "ceph-osd-3"},
		Spec:       api.DaemonSpec{Host: "h1", Cluster: "ceph"},
	}
	for _, ask := range []Ask{
		{Tail: -1}, {Tail: 20, Since: time.Minute}, {Tail: -1, From: "1.2.3", Wait: 10 * time.Second},
	} {
		a := For(d, ask)
		if a.Namespace != "ns" || a.Spec.Host != "h1" || a.Spec.Cluster != "ceph" || !action.Quiet(a) {
			t.Errorf("%+v", a)
		}
		if name, got, err := Of(a); err != nil || name != d.Name || got != ask {
			t.Errorf("%s, %+v, %v of %+v", name, got, err, ask)
		}
	}
	long := For(d, Ask{From: "1.2.3", Wait: time.Hour})
	if _, got, err := Of(long); err != nil || got.Wait != MostWait {
		t.Errorf("%+v, %v", got, err)
	}
	for name, value := range map[string]api.ActionParameter{paramTail: "many", paramSince: "-1m", paramWait: "soon"} {
		a := For(d, Ask{Tail: -1})
		a.Spec.Parameters[name] = value
		if _, _, err := Of(a); !errors.Is(err, action.ErrRefused) {
			t.Errorf("%s %s: %v", name, value, err)
		}
	}
}
