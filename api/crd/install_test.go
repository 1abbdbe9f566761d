package crd_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	extensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	typed "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset/typed/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/holdfast-storage/holdfast/api/crd"
)

// definitions are those of an API server. It serves a kind when it is asked for the second time,
// and answers no creation before another one is there. It can do nothing else: nobody lists all.
type definitions struct {
	typed.CustomResourceDefinitionInterface

	mu    sync.Mutex
	all   map[string]*extensionsv1.CustomResourceDefinition
	asked map[string]int
	// creating counts the creations so far, and two is closed with the second one.
	creating int
	two      chan struct{}
}

func newDefinitions() *definitions {
	return &definitions{
		all: map[string]*extensionsv1.CustomResourceDefinition{}, asked: map[string]int{}, two: make(chan struct{}),
	}
}

func (d *definitions) Get(
	_ context.Context, name string, _ metav1.GetOptions,
) (*extensionsv1.CustomResourceDefinition, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	have := d.all[name]
	if have == nil {
		return nil, apierrors.NewNotFound(extensionsv1.Resource("customresourcedefinitions"), name)
	}
	if d.asked[name]++; d.asked[name] > 1 {
		have.Status.Conditions = []extensionsv1.CustomResourceDefinitionCondition{
			{Type: extensionsv1.Established, Status: extensionsv1.ConditionTrue},
		}
	}
	return have.DeepCopy(), nil
}

func (d *definitions) Create(
	ctx context.Context, o *extensionsv1.CustomResourceDefinition, _ metav1.CreateOptions,
) (*extensionsv1.CustomResourceDefinition, error) {
	d.mu.Lock()
	d.all[o.Name] = o.DeepCopy()
	if d.creating++; d.creating == 2 {
		close(d.two)
	}
	d.mu.Unlock()
	select {
	case <-d.two:
		return o, nil
	case <-ctx.Done():
		return nil, errors.New("no other definition is installed at the same time")
	}
}

// TestInstall: definitions are installed several at once, and Install returns when all are served.
// That of a newer release stays, and keeps no other one from being installed.
func TestInstall(t *testing.T) {
	all, err := crd.Kubernetes()
	if err != nil {
		t.Fatal(err)
	}
	d := newDefinitions()
	newer := all[3].DeepCopy()
	metav1.SetMetaDataAnnotation(&newer.ObjectMeta, crd.AnnotationVersion, "v2.0.0")
	d.all[newer.Name] = newer
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	err = crd.Install(ctx, d, crd.Options{Version: "v1.0.0", Definitions: all})
	if is := new(crd.NewerError); !errors.As(err, &is) || is.Kind != newer.Spec.Names.Kind {
		t.Errorf("beside a definition of a newer release: %v", err)
	}
	for _, definition := range all {
		have := d.all[definition.Name]
		if have == nil {
			t.Errorf("%s is not installed", definition.Name)
		} else if len(have.Status.Conditions) == 0 {
			t.Errorf("Install did not wait until %s is served", definition.Name)
		}
	}
	if v := d.all[newer.Name].Annotations[crd.AnnotationVersion]; v != "v2.0.0" {
		t.Errorf("the definition of a newer release is now that of %s", v)
	}
}
