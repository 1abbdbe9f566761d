package cli

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/holdfast-storage/holdfast/platform/kube"
)

// ofServers explains why a command of Holdfast's own control plane failed, where the API is that of
// a Kubernetes cluster. instead says what Kubernetes has in its place. Elsewhere the error stays.
func (g *globals) ofServers(ctx context.Context, err error, instead string) error {
	if err == nil {
		return nil
	}
	config, problem := g.readConfig()
	if problem != nil {
		return err
	}
	config.Timeout = doctorTimeout
	c, problem := client.New(config, client.Options{Scheme: newScheme()})
	if problem != nil {
		return err
	}
	if problem := notInKubernetes(ctx, c, instead); problem != nil {
		return problem
	}
	return err
}

// notInKubernetes refuses a command of Holdfast's own control plane in Kubernetes. Where it is not
// known what the API is, it refuses nothing.
func notInKubernetes(ctx context.Context, c client.Reader, instead string) error {
	if is, err := kube.IsHome(ctx, c); err != nil || !is {
		return nil //nolint:nilerr // the command itself says what is wrong with the API
	}
	return &exitError{exitRefused, fmt.Errorf(
		"this command is for Holdfast's own servers, and this is a Kubernetes cluster: %s", instead)}
}
