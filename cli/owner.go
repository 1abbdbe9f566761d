package cli

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"unicode"

	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// maxManager is how long the API lets the name of a field manager be.
const maxManager = 128

// owner is who owns the fields that are applied: the user of the certificate, or the user that the kubeconfig names. It is
// what others read when they are told that a field is not theirs.
func (g *globals) owner() (string, error) {
	if config, err := g.podConfig(); config != nil || err != nil {
		return managerName("holdfast-cli"), err
	}
	loader, err := g.kubeconfigLoader()
	if err != nil {
		return "", err
	}
	config, err := loader.ClientConfig()
	if err != nil {
		return "", fmt.Errorf("while reading the kubeconfig: %w", err)
	}
	if name := certificateUser(config); name != "" {
		return managerName(name), nil
	}
	raw, err := loader.RawConfig()
	if err != nil {
		return "", fmt.Errorf("while reading the kubeconfig: %w", err)
	}
	if c := raw.Contexts[cmp.Or(g.context, raw.CurrentContext)]; c != nil && c.AuthInfo != "" {
		return managerName(c.AuthInfo), nil
	}
	return "holdfast", nil
}

// ownedClient has all that it writes owned by one user: others read who labelled a host or approved an action, and not by which program.
type ownedClient struct {
	client.Client
	watching client.WithWatch
}

// Watch writes nothing.
func (c ownedClient) Watch(ctx context.Context, list client.ObjectList, opts ...client.ListOption) (watch.Interface, error) {
	return c.watching.Watch(ctx, list, opts...)
}

// managerName keeps to what the API takes for a name.
func managerName(name string) string {
	name = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '_'
		}
		return r
	}, name)
	return strings.ToValidUTF8(name[:min(len(name), maxManager)], "")
}

// certificateUser is the common name of the client's certificate, if there is one.
func certificateUser(config *rest.Config) string {
	pem, key := config.CertData, config.KeyData
	if len(pem) == 0 && config.CertFile != "" {
		pem, _ = os.ReadFile(config.CertFile) // one that cannot be read is told of by the first request
		key, _ = os.ReadFile(config.KeyFile)
	}
	pair, err := tls.X509KeyPair(pem, key)
	if err != nil {
		return ""
	}
	cert, err := x509.ParseCertificate(pair.Certificate[0])
	if err != nil {
		return ""
	}
	return cert.Subject.CommonName
}

// kubeconfigLoader reads the kubeconfig, or the files of a list such as KUBECONFIG may hold.
func (g *globals) kubeconfigLoader() (clientcmd.ClientConfig, error) {
	path, err := g.kubeconfigPath()
	if err != nil {
		return nil, err
	}
	rules := &clientcmd.ClientConfigLoadingRules{ExplicitPath: path}
	if files := filepath.SplitList(path); len(files) > 1 {
		rules = &clientcmd.ClientConfigLoadingRules{Precedence: files}
	}
	overrides := &clientcmd.ConfigOverrides{CurrentContext: g.context}
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides), nil
}
