package agent

import (
	"context"
	"errors"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestUnanswered(t *testing.T) {
	secrets := schema.GroupResource{Resource: "secrets"}
	for _, tt := range []struct {
		err  error
		want bool
	}{
		{nil, false},
		{waitFor("the Secret s"), false},
		{apierrors.NewForbidden(secrets, "s", errors.New("no")), false},
		{apierrors.NewNotFound(secrets, "s"), false},
		{apierrors.NewTooManyRequests("later", 1), true},
		{apierrors.NewInternalError(errors.New("no quorum")), true},
		{apierrors.NewTimeoutError("slow", 1), true},
		{apierrors.NewServiceUnavailable("starting"), true},
		{context.DeadlineExceeded, true},
	} {
		err := tt.err
		if err != nil {
			err = fmt.Errorf("while reading: %w", err)
		}
		if got := unanswered(err); got != tt.want {
			t.Errorf("%v: %v, want %v", tt.err, got, tt.want)
		}
	}
}
