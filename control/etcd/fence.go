package etcd

import (
	"context"
	"fmt"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/holdfast-storage/holdfast/internal/fence"
)

// fencePrefix is where the fences lie in etcd, beside everything that the API server keeps.
const fencePrefix = "/holdfast/fence/"

// fencedWrites counts the transactions with a fence that were sent through this server's member, by what came of them. One that
// was refused is a server that was overtaken and tried to write: each of them is harm that the fence has kept away.
var fencedWrites = prometheus.NewCounterVec(prometheus.CounterOpts{
	Name: "holdfast_fenced_writes_total",
	Help: "Writes under a leader's or a lock's term: admitted, or refused because a later term has begun.",
}, []string{"result"})

// fenced is the gRPC interceptor that makes transactions with fence tokens depend on the fences. The comparison is part of
// the transaction itself, so it is done when the transaction is applied, at the same place in etcd's log on all members.
func fenced(ctx context.Context, request any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	need, set, err := fencesOf(ctx)
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	if len(need)+len(set) == 0 {
		return next(ctx, request)
	}
	switch r := request.(type) {
	case *pb.TxnRequest:
		return fencedTxn(ctx, r, need, set, next)
	case *pb.PutRequest, *pb.DeleteRangeRequest:
		return nil, status.Error(codes.InvalidArgument, "a write with a fence must be a transaction")
	default:
		return next(ctx, request)
	}
}

func fencesOf(ctx context.Context) (need, set []fence.Token, err error) {
	md, _ := metadata.FromIncomingContext(ctx)
	if need, err = fence.Parse(strings.Join(md.Get(fence.MetadataKey), ",")); err != nil {
		return nil, nil, err
	}
	set, err = fence.Parse(strings.Join(md.Get(fence.SetMetadataKey), ","))
	return need, set, err
}

// fencedTxn puts the transaction into another one: if the fences have these values then do it, else read who has them.
func fencedTxn(ctx context.Context, inner *pb.TxnRequest, need, set []fence.Token, next grpc.UnaryHandler) (any, error) {
	success := len(inner.Success)
	inner.Success = append(inner.Success, settingOps(set)...)
	outer := &pb.TxnRequest{
		Success: []*pb.RequestOp{{Request: &pb.RequestOp_RequestTxn{RequestTxn: inner}}},
	}
	for _, t := range need {
		key := []byte(fencePrefix + t.Name)
		outer.Compare = append(outer.Compare, &pb.Compare{
			Key: key, Target: pb.Compare_VALUE, Result: pb.Compare_EQUAL, TargetUnion: &pb.Compare_Value{Value: []byte(t.Value)},
		})
		outer.Failure = append(outer.Failure, &pb.RequestOp{
			Request: &pb.RequestOp_RequestRange{RequestRange: &pb.RangeRequest{Key: key}},
		})
	}
	answer, err := next(ctx, outer)
	if err != nil {
		return nil, err
	}
	response, ok := answer.(*pb.TxnResponse)
	if !ok {
		return nil, status.Errorf(codes.Internal, "etcd answered a transaction by a %T", answer)
	}
	if !response.Succeeded {
		fencedWrites.WithLabelValues("refused").Inc()
		return nil, status.Error(codes.FailedPrecondition, lostText(need, response))
	}
	fencedWrites.WithLabelValues("admitted").Inc()
	result := response.Responses[0].GetResponseTxn()
	result.Header = response.Header
	if result.Succeeded {
		// The client shall see the answers to what it asked for alone.
		result.Responses = result.Responses[:success]
	}
	return result, nil
}

// settingOps write the fences, or remove those without a value.
func settingOps(set []fence.Token) []*pb.RequestOp {
	var ops []*pb.RequestOp
	for _, t := range set {
		key := []byte(fencePrefix + t.Name)
		op := &pb.RequestOp{Request: &pb.RequestOp_RequestPut{RequestPut: &pb.PutRequest{Key: key, Value: []byte(t.Value)}}}
		if t.Value == "" {
			op = &pb.RequestOp{Request: &pb.RequestOp_RequestDeleteRange{RequestDeleteRange: &pb.DeleteRangeRequest{Key: key}}}
		}
		ops = append(ops, op)
	}
	return ops
}

// lostText says which fence is lost, and who has it.
func lostText(need []fence.Token, response *pb.TxnResponse) string {
	for i, t := range need {
		kvs := response.Responses[i].GetResponseRange().GetKvs()
		switch {
		case len(kvs) == 0:
			return fmt.Sprintf("%s %s was lost by %s: no server has it now", fence.LostPrefix, t.Name, t.Value)
		case string(kvs[0].Value) != t.Value:
			return fmt.Sprintf("%s %s was lost by %s: %s has it now", fence.LostPrefix, t.Name, t.Value, kvs[0].Value)
		}
	}
	return fence.LostPrefix + " it changed while it was compared"
}
