package livefigures

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

const (
	readTimeout = 4 * time.Second
	mostAnswer  = 1 << 20
	// operatorPort is where an operator serves in Kubernetes, by the manifests in
	// deploy/kubernetes.
	operatorPort = "8081"
)

// Reader asks the leader.
type Reader struct {
	host string
	by   *http.Client
	c    client.Reader
}

// NewReader returns a Reader with the rights of what connect returns. c reads who leads.
func NewReader(connect func() (*rest.Config, error), c client.Reader) (*Reader, error) {
	config, err := connect()
	if err != nil {
		return nil, err
	}
	by, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("while preparing to read figures: %w", err)
	}
	return &Reader{host: config.Host, by: by, c: c}, nil
}

// ReadAll asks for the figures of clusters, all at once, so that a leader that does not answer is
// waited for once. Those of whom nobody says anything have nil: there is the StorageStatus.
func (r *Reader) ReadAll(ctx context.Context, clusters []types.NamespacedName) []*api.StorageFigures {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	all := make([]*api.StorageFigures, len(clusters))
	var asked sync.WaitGroup
	for i, cluster := range clusters {
		asked.Go(func() {
			if figures, err := r.Read(ctx, cluster); err == nil {
				all[i] = figures
			}
		})
	}
	asked.Wait()
	return all
}

// errNone says that there is nobody to ask for more than the StorageStatus has.
var errNone = errors.New("the StorageStatus has all figures that there are")

// Read asks the leader for the figures of a cluster: a server passes the question on, and a
// Kubernetes API server, which knows no such path, does if it is asked for the pod of the operator
// that leads and the account may get pods/proxy.
func (r *Reader) Read(ctx context.Context, cluster types.NamespacedName) (*api.StorageFigures, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	figures, status, err := r.get(ctx, Path(cluster))
	if err == nil || status != http.StatusNotFound && status != http.StatusForbidden {
		return figures, err
	}
	pod, leaseErr := leader(ctx, r.c)
	if leaseErr != nil {
		return nil, err
	}
	figures, _, err = r.get(ctx, "/api/v1/namespaces/"+api.SystemNamespace+"/pods/http:"+pod+":"+operatorPort+"/proxy"+
		Path(cluster))
	return figures, err
}

// leader is the name of the server or the pod that leads.
func leader(ctx context.Context, c client.Reader) (string, error) {
	lease := &coordinationv1.Lease{}
	key := types.NamespacedName{Namespace: api.SystemNamespace, Name: api.LeaderLease}
	if err := c.Get(ctx, key, lease); err != nil {
		return "", fmt.Errorf("while looking who leads: %w", err)
	}
	name, _, _ := strings.Cut(ptr.Deref(lease.Spec.HolderIdentity, ""), "_")
	return name, nil
}

func (r *Reader) get(ctx context.Context, path string) (*api.StorageFigures, int, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, r.host+path, http.NoBody)
	if err != nil {
		return nil, 0, err
	}
	response, err := r.by.Do(request)
	if err != nil {
		return nil, 0, err
	}
	defer response.Body.Close()
	if response.StatusCode == http.StatusNoContent {
		return nil, response.StatusCode, errNone
	}
	text, err := io.ReadAll(io.LimitReader(response.Body, mostAnswer))
	if err != nil {
		return nil, response.StatusCode, err
	}
	if response.StatusCode != http.StatusOK {
		return nil, response.StatusCode, fmt.Errorf("the server answered %s: %.200s", response.Status, text)
	}
	figures := &api.StorageFigures{}
	if err := json.Unmarshal(text, figures); err != nil {
		return nil, response.StatusCode, fmt.Errorf("while reading figures: %w", err)
	}
	return figures, response.StatusCode, nil
}
