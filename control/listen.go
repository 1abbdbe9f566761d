package control

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"syscall"
)

// listen opens the API's port, and makes sure that etcd's are free, before anything is made or joined.
func listen(ctx context.Context, s *settings) (net.Listener, error) {
	var config net.ListenConfig
	api, err := config.Listen(ctx, "tcp", net.JoinHostPort("", strconv.Itoa(s.APIPort)))
	if err != nil {
		return nil, portError(err, "the API", s.APIPort, "--api-port")
	}
	for _, p := range []struct {
		address string
		port    int
		what    string
		flag    string
	}{
		{s.Address, s.EtcdPeerPort, "etcd's peers", "--etcd-peer-port"},
		{"127.0.0.1", s.EtcdClientPort, "etcd's clients", "--etcd-client-port"},
	} {
		l, err := config.Listen(ctx, "tcp", net.JoinHostPort(p.address, strconv.Itoa(p.port)))
		if err != nil {
			return nil, errors.Join(portError(err, p.what, p.port, p.flag), api.Close())
		}
		if err := l.Close(); err != nil {
			return nil, errors.Join(err, api.Close())
		}
	}
	return api, nil
}

func portError(err error, what string, port int, flag string) error {
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("port %d, for %s, is taken by another program ('ss -ltnp sport = :%d' shows which): stop it, or choose another port with %s: %w",
			port, what, port, flag, err)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return fmt.Errorf("this machine does not have the address that port %d, for %s, shall be opened at: give one that it has with --address: %w",
			port, what, err)
	}
	return fmt.Errorf("while opening port %d for %s: %w", port, what, err)
}
