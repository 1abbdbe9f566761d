package hosttoken

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// errNoAccount says that the operator has made no account of the host yet.
var errNoAccount = errors.New("the operator has made no account of the host yet")

// awaitAccount returns when the host has an account, or when ctx ends. The API server tells of it,
// so that an agent which starts before the operator loses no time, and asks for nothing again and
// again.
func (s *source) awaitAccount(ctx context.Context) error {
	w, err := s.clients.CoreV1().ServiceAccounts(Namespace).Watch(ctx,
		metav1.ListOptions{FieldSelector: "metadata.name=" + s.node})
	if err != nil {
		return fmt.Errorf("while watching for the account of host %s: %w", s.node, err)
	}
	defer w.Stop()
	for {
		select {
		case <-ctx.Done():
			return errNoAccount
		case e, ok := <-w.ResultChan():
			switch {
			case ok && (e.Type == watch.Added || e.Type == watch.Modified):
				return nil // what is there already is told as added
			case !ok || e.Type == watch.Error:
				return errNoAccount
			}
		}
	}
}
