// Package leadership tests what must be true whoever leads: that a server which was overtaken writes nothing, that nothing is
// lost or told twice from leader to leader, and that locks, terms and actions behave as one would have it when all of them
// come one after the other (linearizability).
package leadership

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/cli"
	"github.com/holdfast-storage/holdfast/driver/ceph/rados"
)

// asHoldfast in the environment has the test's own program be holdfast, in which a part of the leader is stubborn.
const asHoldfast = "HOLDFAST_TEST_LEADERSHIP"

func TestMain(m *testing.M) {
	rados.MaybeServe()
	log.SetLogger(logr.Discard())
	if os.Getenv(asHoldfast) == "" {
		os.Exit(m.Run())
	}
	if len(os.Args) > 1 && os.Args[1] == "server" {
		go stubborn(os.Getenv("HOLDFAST_DATA_DIR"), os.Args)
	}
	os.Exit(cli.Main(os.Args[1:]))
}

func newClient(config *rest.Config) (client.Client, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{api.AddToScheme, corev1.AddToScheme, coordinationv1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	return client.New(config, client.Options{Scheme: scheme})
}

// leader returns the token of who leads, and the name of the server.
func leader(ctx context.Context, c client.Reader) (token, server string, err error) {
	var lease coordinationv1.Lease
	err = c.Get(ctx, types.NamespacedName{Namespace: api.SystemNamespace, Name: api.LeaderLease}, &lease)
	token = ptr.Deref(lease.Spec.HolderIdentity, "")
	server, _, _ = strings.Cut(token, "_")
	return token, server, err
}
