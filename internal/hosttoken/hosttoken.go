// Package hosttoken gives the agent of a Kubernetes node the identity of its host. The agent's pod
// may ask for one token alone: that of the ServiceAccount which has its node's name. The operator
// keeps the rights of that account.
package hosttoken

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"golang.org/x/oauth2"
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
	"k8s.io/utils/ptr"
)

const (
	// Namespace holds the ServiceAccounts of hosts.
	Namespace = "holdfast-hosts"
	// lasts is how long a token is asked for. The API server may give it for another time.
	lasts = time.Hour
	// early is how long before its end a token is replaced.
	early = 10 * time.Minute
	// askTimeout bounds asking for a token, and the wait for an account in it.
	askTimeout = 30 * time.Second
)

// Config returns a Config that acts as a host. own is that of the agent's pod. Each token is bound
// to the Node: it ends with the Node. What waits for a token stops waiting when ctx ends.
func Config(ctx context.Context, own *rest.Config, node string) (*rest.Config, error) {
	clients, err := kubernetes.NewForConfig(rest.AddUserAgent(rest.CopyConfig(own), "host-token"))
	if err != nil {
		return nil, fmt.Errorf("while preparing to ask for the host's token: %w", err)
	}
	config := rest.AnonymousClientConfig(own)
	config.QPS, config.UserAgent = own.QPS, own.UserAgent
	tokens := transport.NewCachedTokenSource(&source{ctx: ctx, clients: clients, node: node})
	// A token that the API server does not take, as after somebody deleted the account and the
	// operator made it anew, is replaced.
	config.Wrap(func(by http.RoundTripper) http.RoundTripper {
		return transport.ResettableTokenSourceWrapTransport(tokens)(by)
	})
	return config, nil
}

// source asks the API for tokens.
type source struct {
	//nolint:containedctx // oauth2 passes none, and an agent that ends waits for no answer
	ctx     context.Context
	clients kubernetes.Interface
	node    string
}

// Token implements oauth2.TokenSource. The cache in front of it calls it once at a time. Where the
// host has no account yet, it waits for one.
func (s *source) Token() (*oauth2.Token, error) {
	ctx, cancel := context.WithTimeout(s.ctx, askTimeout)
	defer cancel()
	token, err := s.ask(ctx)
	if apierrors.IsNotFound(err) && s.awaitAccount(ctx) == nil {
		token, err = s.ask(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("while asking for the token of host %s (the operator makes its account): %w", s.node,
			err)
	}
	return token, nil
}

func (s *source) ask(ctx context.Context) (*oauth2.Token, error) {
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		ExpirationSeconds: ptr.To(int64(lasts / time.Second)),
		BoundObjectRef:    &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Node", Name: s.node},
	}}
	asked := time.Now()
	answer, err := s.clients.CoreV1().ServiceAccounts(Namespace).CreateToken(ctx, s.node, request,
		metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	return &oauth2.Token{AccessToken: answer.Status.Token, TokenType: "Bearer", Expiry: asked.Add(usable(answer))}, nil
}

// usable is for how long a token is used. It goes by how long the API server says that the token
// lasts, and not by when it ends: the clocks of the node and the API server may differ.
func usable(answer *authenticationv1.TokenRequest) time.Duration {
	lasts := time.Duration(ptr.Deref(answer.Spec.ExpirationSeconds, int64(lasts/time.Second))) * time.Second
	if lasts < 2*early {
		return lasts / 2
	}
	return lasts - early
}
