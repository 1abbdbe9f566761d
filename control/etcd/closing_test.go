package etcd

import (
	"context"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// TestClosing: that the status of a member cannot be told ends nothing; any other panic is etcd's own affair.
func TestClosing(t *testing.T) {
	closed := func(context.Context, any) (any, error) { panic("its database is closed") }
	if answer, err := closing(t.Context(), &pb.StatusRequest{}, nil, closed); answer != nil || status.Code(err) != codes.Unavailable {
		t.Errorf("%v, %v", answer, err)
	}
	want := &pb.StatusResponse{DbSize: 7}
	open := func(context.Context, any) (any, error) { return want, nil }
	if answer, err := closing(t.Context(), &pb.StatusRequest{}, nil, open); answer != want || err != nil {
		t.Errorf("%v, %v", answer, err)
	}
	defer func() {
		if recover() == nil {
			t.Error("a panic of another request was kept back")
		}
	}()
	_, _ = closing(t.Context(), &pb.PutRequest{}, nil, closed)
}
