// Package loopback runs servers of Holdfast as processes of this machine that meet on loopback. It needs no root and no
// namespaces, and serves tests of what real processes do when they are stopped and killed. Their agents see no device.
package loopback

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-storage/holdfast/test/home"
	"github.com/holdfast-storage/holdfast/test/hosts"
)

// Servers are servers of one control plane. They are killed, and what they wrote is removed, when the test ends.
type Servers struct {
	// Dir holds everything.
	Dir string
	// Program runs holdfast, and Env is what its environment has beside that of this process.
	Program string
	Env     []string

	all []*Server
}

// Start starts so many servers, called s1, s2, …, and returns when all of them are ready. Each one's environment also has
// HOLDFAST_DATA_DIR.
func Start(t hosts.T, program string, count int, env ...string) *Servers {
	t.Helper()
	dir, err := os.MkdirTemp("", "holdfast-loopback-")
	if err != nil {
		t.Fatalf("while making a directory for servers: %v", err)
	}
	s := &Servers{Dir: dir, Program: program, Env: env}
	t.Cleanup(func() { _ = os.RemoveAll(dir) }) // what is left is found by its name
	s.add(t, 1)
	s.Server(1).AwaitReady(t)
	for n := 2; n <= count; n++ {
		s.add(t, n)
	}
	// A server whose vote would make their number an even one stands by until there is one more.
	for _, one := range s.all {
		one.AwaitReady(t)
	}
	return s
}

// Count is how many servers there are.
func (s *Servers) Count() int { return len(s.all) }

// Server returns a server, the first of which is number 1.
func (s *Servers) Server(number int) *Server { return s.all[number-1] }

// Named returns the server of that name.
func (s *Servers) Named(t hosts.T, name string) *Server {
	t.Helper()
	for _, one := range s.all {
		if one.Name == name {
			return one
		}
	}
	t.Fatalf("there is no server %q", name)
	return nil
}

func (s *Servers) add(t hosts.T, n int) {
	t.Helper()
	ports, err := FreePorts(3)
	if err != nil {
		t.Fatalf("while looking for free ports: %v", err)
	}
	name := "s" + strconv.Itoa(n)
	one := &Server{Name: name, Dir: filepath.Join(s.Dir, name), APIPort: ports[0], etcdPort: ports[2], servers: s}
	args, stdin := []string{
		"--name", name, "--address", "127.0.0.1", "--run-dir", filepath.Join(s.Dir, name+"-run"), "--device-filter", "no-device",
		"--api-port", strconv.Itoa(ports[0]), "--etcd-peer-port", strconv.Itoa(ports[1]), "--etcd-client-port", strconv.Itoa(ports[2]),
	}, ""
	if n == 1 {
		args = append(args, "--init")
	} else {
		args, stdin = append(args, "--join", "-"), s.token(t)
	}
	s.all = append(s.all, one)
	t.Cleanup(func() { one.end(t) })
	one.launch(t, stdin, args...)
}

func (s *Servers) token(t hosts.T) string {
	t.Helper()
	var token string
	// While a member joins, etcd's quorum is a larger one for some moments, and a write may be refused.
	home.Await(t, "a token for a server", func() error {
		out, err := s.Server(1).Holdfast("token", "create", "--role", "server")
		token = out
		return err
	})
	return token
}

// Holdfast runs a command of holdfast against this server.
func (s *Server) Holdfast(args ...string) (string, error) { return s.HoldfastWith("", args...) }

// HoldfastWith is Holdfast for a command that reads its standard input.
func (s *Server) HoldfastWith(stdin string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	cmd := s.command(ctx, args...)
	var complaint strings.Builder
	cmd.Stdin, cmd.Stderr = strings.NewReader(stdin), &complaint
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("holdfast %s: %w: %s", strings.Join(args, " "), err, complaint.String())
	}
	return string(out), err
}

func (s *Server) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, s.servers.Program, args...)
	cmd.Env = append(append(os.Environ(), s.servers.Env...), "HOLDFAST_DATA_DIR="+s.Dir, "HOLDFAST_KUBECONFIG=")
	return cmd
}

// FreePorts returns ports of loopback that are free now. They are none that the kernel gives to connections (32768 and up), one of
// which could take a port between the look and the use.
func FreePorts(n int) ([]int, error) {
	var ports []int
	for range 100 {
		port := 20000 + rand.IntN(12000)
		l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", ":"+strconv.Itoa(port)) // as the server does
		if err != nil {
			continue
		}
		defer l.Close()
		if ports = append(ports, port); len(ports) == n {
			return ports, nil
		}
	}
	return nil, errors.New("hardly any port of loopback from 20000 to 32000 is free")
}
