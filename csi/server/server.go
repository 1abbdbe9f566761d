// Package server serves the parts of the CSI driver on Unix sockets, and registers the node's part
// with the kubelet.
package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

const (
	// callTimeout bounds calls whose caller sets no deadline.
	callTimeout = 2 * time.Minute
	// answerMargin bounds the part of the caller's time that is left to the answer.
	answerMargin = time.Second
	// stopTimeout bounds what calls under way get when the server ends.
	stopTimeout = 5 * time.Second
)

// Config is what to serve.
type Config struct {
	// Endpoint is the path of the socket. It may begin with unix://.
	Endpoint string
	// Controller and Node are the services; nil: not served.
	Controller csi.ControllerServer
	Node       csi.NodeServer
	// Registration is the kubelet's directory plugins_registry; empty: no kubelet is told.
	Registration string
	// KubeletEndpoint is the path of the socket as the kubelet sees it; empty: Endpoint.
	KubeletEndpoint string
	Log             *slog.Logger
}

// Run serves until ctx ends.
func Run(ctx context.Context, cfg Config) error {
	s := grpc.NewServer(grpc.UnaryInterceptor(intercept(cfg.Log)))
	csi.RegisterIdentityServer(s, identity{})
	if cfg.Controller != nil {
		csi.RegisterControllerServer(s, cfg.Controller)
	}
	if cfg.Node != nil {
		csi.RegisterNodeServer(s, cfg.Node)
	}
	socket := strings.TrimPrefix(cfg.Endpoint, "unix://")
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return serve(ctx, s, socket) })
	if cfg.Registration != "" {
		if cfg.KubeletEndpoint == "" {
			cfg.KubeletEndpoint = socket
		}
		group.Go(func() error { return register(ctx, cfg) })
	}
	return group.Wait()
}

// serve serves on a socket until ctx ends. A socket of an earlier run is removed.
func serve(ctx context.Context, s *grpc.Server, socket string) error {
	if err := os.MkdirAll(filepath.Dir(socket), 0o750); err != nil {
		return fmt.Errorf("while making the directory of the socket: %w", err)
	}
	if err := os.Remove(socket); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("while removing the socket of an earlier run: %w", err)
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "unix", socket)
	if err != nil {
		return fmt.Errorf("while listening on %s: %w", socket, err)
	}
	if err := os.Chmod(socket, 0o600); err != nil {
		return fmt.Errorf("while restricting the socket: %w", err)
	}
	stop := context.AfterFunc(ctx, func() {
		hard := time.AfterFunc(stopTimeout, s.Stop)
		defer hard.Stop()
		s.GracefulStop()
	})
	defer stop()
	if err := s.Serve(l); err != nil {
		return fmt.Errorf("while serving on %s: %w", socket, err)
	}
	return nil
}

// intercept gives each call a deadline and each error a code, and logs errors. Requests are not
// logged: they have keys.
func intercept(log *slog.Logger) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, r any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
		ctx, cancel := context.WithTimeout(ctx, timeFor(ctx))
		defer cancel()
		begun := time.Now()
		answer, err := next(ctx, r)
		if err == nil {
			return answer, nil
		}
		err = coded(err)
		method := info.FullMethod[strings.LastIndex(info.FullMethod, "/")+1:]
		log.Warn("a call failed", "method", method, "volume", volumeOf(r), "code", status.Code(err).String(),
			"after", time.Since(begun).Round(time.Millisecond), "error", status.Convert(err).Message())
		return nil, err
	}
}

// timeFor is how long a call may take: somewhat less than its caller waits, so that the caller gets
// the reason and not its own deadline.
func timeFor(ctx context.Context) time.Duration {
	end, ok := ctx.Deadline()
	if !ok {
		return callTimeout
	}
	left := time.Until(end)
	return min(left-min(left/10, answerMargin), callTimeout)
}

// coded gives an error a code of gRPC's.
func coded(err error) error {
	if s, ok := status.FromError(err); ok {
		return s.Err()
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return status.Error(codes.DeadlineExceeded, err.Error())
	}
	return status.Error(codes.Internal, err.Error())
}

func volumeOf(r any) string {
	switch r := r.(type) {
	case interface{ GetVolumeId() string }:
		return r.GetVolumeId()
	case interface{ GetName() string }:
		return r.GetName()
	}
	return ""
}
