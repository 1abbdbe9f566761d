package conn

import (
	"context"
	"errors"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/holdfast-storage/holdfast/driver/ceph/rados"
)

func TestTold(t *testing.T) {
	for _, tt := range []struct {
		err  error
		code codes.Code
	}{
		{nil, codes.OK},
		{errors.Join(rados.ErrNoAnswer), codes.Unavailable},
		{context.DeadlineExceeded, codes.DeadlineExceeded},
		{&rados.CommandError{Errno: 2}, codes.NotFound},
		{&rados.CommandError{Errno: 11}, codes.Unavailable},
		{&rados.CommandError{Errno: 13}, codes.Internal},
		{status.Error(codes.OutOfRange, "x"), codes.OutOfRange},
	} {
		if got := status.Code(Told(tt.err)); got != tt.code {
			t.Errorf("%v: got %v, want %v", tt.err, got, tt.code)
		}
	}
}
