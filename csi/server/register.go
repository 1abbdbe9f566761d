package server

import (
	"context"
	"log/slog"
	"path/filepath"

	"google.golang.org/grpc"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"

	"github.com/holdfast-storage/holdfast/csi/backend"
)

// register serves the kubelet's question for the driver, on a socket in the directory that the
// kubelet watches.
func register(ctx context.Context, cfg Config) error {
	s := grpc.NewServer()
	registration.RegisterRegistrationServer(s, registrar{endpoint: cfg.KubeletEndpoint, log: cfg.Log})
	return serve(ctx, s, filepath.Join(cfg.Registration, backend.DriverName+"-reg.sock"))
}

type registrar struct {
	registration.UnimplementedRegistrationServer

	endpoint string
	log      *slog.Logger
}

// GetInfo says what the driver is.
func (r registrar) GetInfo(context.Context, *registration.InfoRequest) (*registration.PluginInfo, error) {
	return &registration.PluginInfo{
		Type: registration.CSIPlugin, Name: backend.DriverName, Endpoint: r.endpoint,
		SupportedVersions: []string{"1.0.0"},
	}, nil
}

// NotifyRegistrationStatus takes the kubelet's answer. The kubelet asks again after it was restarted.
func (r registrar) NotifyRegistrationStatus(
	_ context.Context, s *registration.RegistrationStatus,
) (*registration.RegistrationStatusResponse, error) {
	if s.GetPluginRegistered() {
		r.log.Info("the kubelet registered the driver")
	} else {
		r.log.Error("the kubelet refused the driver", "error", s.GetError())
	}
	return &registration.RegistrationStatusResponse{}, nil
}
