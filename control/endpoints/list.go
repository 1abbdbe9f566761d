package endpoints

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	stdmaps "maps"
	"net/http"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/control/access"
)

// Path is where a server lists all servers, to everyone who has a certificate.
const Path = "/holdfast/v1/servers"

// ServersName is the ConfigMap that holds the servers: name, and IP:port.
const ServersName = "servers"

// Publish puts a server on the list, with the rights of an administrator. It writes nothing when the server is there.
func Publish(ctx context.Context, client kubernetes.Interface, name, address string) error {
	maps := client.CoreV1().ConfigMaps(api.SystemNamespace)
	err := retry.OnError(retry.DefaultBackoff, retriable, func() error {
		list, err := maps.Get(ctx, ServersName, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			list = &corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Name: ServersName, Labels: access.Labels()},
				Data:       map[string]string{name: address},
			}
			_, err = maps.Create(ctx, list, metav1.CreateOptions{})
			return err
		}
		if err != nil || list.Data[name] == address {
			return err
		}
		if list.Data == nil {
			list.Data = map[string]string{}
		}
		list.Data[name] = address
		_, err = maps.Update(ctx, list, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		return fmt.Errorf("while putting this server on the list of servers: %w", err)
	}
	return nil
}

// Reset empties the list of servers, with the rights of an administrator.
func Reset(ctx context.Context, client kubernetes.Interface) error {
	err := client.CoreV1().ConfigMaps(api.SystemNamespace).Delete(ctx, ServersName, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("while emptying the list of servers: %w", err)
	}
	return nil
}

// Keep takes all others off a ConfigMap of servers by their names, such as ServersName, than those whose names are kept, with the rights of an
// administrator. It writes nothing when there are none.
func Keep(ctx context.Context, client kubernetes.Interface, of string, kept func(name string) bool) error {
	maps := client.CoreV1().ConfigMaps(api.SystemNamespace)
	err := retry.OnError(retry.DefaultBackoff, retriable, func() error {
		list, err := maps.Get(ctx, of, metav1.GetOptions{ResourceVersion: "0"})
		if err != nil {
			return err
		}
		before := len(list.Data)
		stdmaps.DeleteFunc(list.Data, func(name, _ string) bool { return !kept(name) })
		if len(list.Data) == before {
			return nil
		}
		_, err = maps.Update(ctx, list, metav1.UpdateOptions{})
		return err
	})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("while taking servers off the ConfigMap %s: %w", of, err)
	}
	return nil
}

func retriable(err error) bool { return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) }

// Published reads the list of servers, sorted, with the rights of an administrator.
func Published(ctx context.Context, client kubernetes.Interface) ([]string, error) {
	list, err := client.CoreV1().ConfigMaps(api.SystemNamespace).Get(ctx, ServersName, metav1.GetOptions{ResourceVersion: "0"})
	if err != nil {
		return nil, fmt.Errorf("while reading the list of servers: %w", err)
	}
	return Addresses(list), nil
}

// Addresses is the list of servers that the ConfigMap holds, sorted.
func Addresses(list *corev1.ConfigMap) []string { return slices.Sorted(stdmaps.Values(list.Data)) }

// Handler serves the list of servers.
func Handler(client kubernetes.Interface) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		servers, err := Published(r.Context(), client)
		if err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		// An error here means that the client is gone.
		_ = json.NewEncoder(w).Encode(servers)
	})
}

// List asks a server for the list of servers, sorted; everyone who has a certificate may.
func List(ctx context.Context, config *rest.Config) ([]string, error) {
	text, err := get(ctx, config, Path)
	if err != nil {
		return nil, fmt.Errorf("while asking for the list of servers: %w", err)
	}
	var servers []string
	if err := json.Unmarshal(text, &servers); err != nil {
		return nil, fmt.Errorf("while reading the list of servers: %w", err)
	}
	return servers, nil
}

// get reads a path that belongs to no API group.
func get(ctx context.Context, config *rest.Config, path string) ([]byte, error) {
	client, err := plain(config)
	if err != nil {
		return nil, err
	}
	return client.Get().AbsPath(path).DoRaw(ctx)
}

// plain is a client for what belongs to no API group.
func plain(config *rest.Config) (*rest.RESTClient, error) {
	config = rest.CopyConfig(config)
	config.GroupVersion = &schema.GroupVersion{}
	config.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	return rest.UnversionedRESTClientFor(config)
}

// refreshEvery is how often a host asks for the list of servers. It changes when a server joins.
const refreshEvery = time.Minute

// Run keeps the list of servers, and the certificate, fresh until ctx ends.
func (s *Servers) Run(ctx context.Context, log *slog.Logger) {
	var wg sync.WaitGroup
	wg.Go(func() { s.keepList(ctx, log) })
	wg.Go(func() { s.keepCertificate(ctx, log) })
	wg.Wait()
}

func (s *Servers) keepList(ctx context.Context, log *slog.Logger) {
	tick := time.NewTicker(cmp.Or(s.Every, refreshEvery))
	defer tick.Stop()
	for {
		if err := errors.Join(s.Refresh(ctx), s.believe(ctx)); err != nil && ctx.Err() == nil {
			log.Debug("cannot refresh the list of servers or the trusted authorities", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// Refresh asks for the list of servers once.
func (s *Servers) Refresh(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	servers, err := List(ctx, s.Config())
	if err != nil {
		return err
	}
	return s.Set(servers)
}
