package orch

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// HTTP is a client that reaches what listens on loopback in the namespace of the release.
func (r *Release) HTTP() *http.Client {
	transport := &http.Transport{DialContext: r.dial}
	r.t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: limit}
}

// dial connects from within the namespace, which a socket keeps for good. The thread goes back to
// its own network: daemons of releases end with the threads that started them.
func (r *Release) dial(ctx context.Context, network, address string) (conn net.Conn, err error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	own, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		return nil, err
	}
	defer own.Close()
	there, err := os.Open(fmt.Sprintf("/proc/%d/ns/net", r.keeper.Process.Pid))
	if err != nil {
		return nil, err
	}
	defer there.Close()
	if err := unix.Setns(int(there.Fd()), unix.CLONE_NEWNET); err != nil {
		return nil, err
	}
	conn, err = (&net.Dialer{}).DialContext(ctx, network, address)
	if back := unix.Setns(int(own.Fd()), unix.CLONE_NEWNET); back != nil {
		panic(fmt.Sprintf("a thread is left in another network: %v", back))
	}
	return conn, err
}
