package etcd

import (
	"context"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// closing is the gRPC interceptor that answers a question for the status of a member that is just being stopped. etcd (3.6) looks into its
// database for it without asking whether that is closed already, and the panic would end the whole server, which only gives up its seat.
func closing(ctx context.Context, request any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (answer any, err error) {
	if _, ok := request.(*pb.StatusRequest); !ok {
		return next(ctx, request)
	}
	defer func() {
		if p := recover(); p != nil {
			answer, err = nil, status.Errorf(codes.Unavailable, "the member has no status while it stops: %v", p)
		}
	}()
	return next(ctx, request)
}
