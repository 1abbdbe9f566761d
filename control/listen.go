package control

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"syscall"

	"github.com/holdfast-storage/holdfast/control/doors"
)

// listen opens the API's port, within bounds, and makes sure that etcd's are free, before anything
// is made or joined.
func listen(ctx context.Context, s *settings, log *slog.Logger) (*doors.Listener, error) {
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
	return doors.Wrap(api, s.bounds, log), nil
}

func portError(err error, what string, port int, flag string) error {
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("port %d, for %s, is taken by another program ('ss -ltnp sport = :%d' shows which): stop it, or choose another port with %s: %w",
			port, what, port, flag, err)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return fmt.Errorf("this machine does not have the address that port %d, for %s, needs: set an existing address with --address: %w",
			port, what, err)
	}
	return fmt.Errorf("while opening port %d for %s: %w", port, what, err)
}

// fewDescriptors is below what a large fleet needs, and what the units that are delivered ask for.
const fewDescriptors = 16384

// boundsOf is how many connections the server keeps open.
func boundsOf(c *Config) (doors.Bounds, error) {
	if c.Connections != (doors.Bounds{}) {
		return c.Connections, nil
	}
	limit, err := doors.Descriptors()
	if err != nil {
		return doors.Bounds{}, err
	}
	bounds := doors.ForDescriptors(limit)
	if limit < fewDescriptors {
		c.Log.Warn("the limit of open files is low, which limits connections: "+
			"raise LimitNOFILE= of its unit, or 'ulimit -Hn'",
			"files", limit, "wanted", fewDescriptors, "connections", bounds.Total())
	}
	return bounds, nil
}
