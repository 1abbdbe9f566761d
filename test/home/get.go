package home

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// adminKubeconfig is where a server keeps the kubeconfig of its administrator.
const adminKubeconfig = "/var/lib/holdfast/admin.kubeconfig"

// Resource names objects of Holdfast's kinds.
type Resource struct {
	// Kind is in the plural, such as storageclusters.
	Kind string
	// Name is empty for all objects of the kind.
	Name string
	// Namespace is empty for kinds without, and for all namespaces.
	Namespace string
}

func (r Resource) path() string {
	at := path.Join("/apis", api.GroupVersion.String())
	if r.Namespace != "" {
		at = path.Join(at, "namespaces", r.Namespace)
	}
	return path.Join(at, r.Kind, r.Name)
}

// args are those of 'holdfast get' for the same.
func (r Resource) args() []string {
	args := []string{"get", r.Kind, "-o", "json"}
	if r.Name != "" {
		args = append(args, r.Name)
	}
	switch {
	case r.Namespace != "":
		args = append(args, "-n", r.Namespace)
	case r.Name == "":
		args = append(args, "-A")
	}
	return args
}

// Get reads objects as JSON by the server of a host. It asks the API from inside the host, because a test that waits reads
// again and again, and to start a program each time would cost more than what is waited for. Where the server does not
// answer, 'holdfast get' asks the others, as for a person.
func (h *Home) Get(number int, r Resource) ([]byte, error) {
	text, err := h.ask(number, r)
	if err == nil {
		return text, nil
	}
	out, err := h.HoldfastOn(number, r.args()...)
	return []byte(out), err
}

// askLimit bounds one request.
const askLimit = 10 * time.Second

func (h *Home) ask(number int, r Resource) ([]byte, error) {
	host := h.Lab.Host(number)
	text, err := os.ReadFile(host.Path(adminKubeconfig))
	if err != nil {
		return nil, err
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(text)
	if err != nil {
		return nil, err
	}
	tls, err := rest.TLSConfigFor(config)
	if err != nil {
		return nil, err
	}
	transport := &http.Transport{TLSClientConfig: tls, DialContext: host.Dial, DisableKeepAlives: true}
	client := &http.Client{Transport: transport}
	ctx, cancel := context.WithTimeout(context.Background(), askLimit)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, config.Host+r.path(), nil)
	if err != nil {
		return nil, err
	}
	answer, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("reading %s: %s", r.path(), answer.Status)
	}
	return io.ReadAll(answer.Body)
}
