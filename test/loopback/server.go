package loopback

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/holdfast-storage/holdfast/control/access"
	"github.com/holdfast-storage/holdfast/control/pki"
	"github.com/holdfast-storage/holdfast/test/home"
	"github.com/holdfast-storage/holdfast/test/hosts"
)

// Server is one server.
type Server struct {
	Name string
	// Dir is its data directory.
	Dir     string
	APIPort int

	etcdPort int
	servers  *Servers
	cmd      *exec.Cmd
	done     chan struct{}
}

// Log is the file that the server's output goes to.
func (s *Server) Log() string { return s.Dir + ".log" }

func (s *Server) launch(t hosts.T, stdin string, args ...string) {
	t.Helper()
	log, err := os.OpenFile(s.Log(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatalf("while opening the log of server %s: %v", s.Name, err)
	}
	defer log.Close()
	s.cmd = s.command(context.Background(), append([]string{"server"}, args...)...)
	s.cmd.Stdin, s.cmd.Stdout, s.cmd.Stderr = strings.NewReader(stdin), log, log
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := s.cmd.Start(); err != nil {
		t.Fatalf("while starting server %s: %v", s.Name, err)
	}
	done, cmd := make(chan struct{}), s.cmd
	s.done = done
	go func() {
		_ = cmd.Wait() // a server that was killed says so by an error
		close(done)
	}()
}

// Signal sends a signal to the server.
func (s *Server) Signal(t hosts.T, sig os.Signal) {
	t.Helper()
	if err := s.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Fatalf("while sending %s to server %s: %v", sig, s.Name, err)
	}
}

// PID is the process of the server.
func (s *Server) PID() int { return s.cmd.Process.Pid }

// Kill is kill -9. It does not wait for the end; Restart does.
func (s *Server) Kill(t hosts.T) {
	t.Helper()
	s.Signal(t, syscall.SIGKILL)
}

// Restart starts a server that was killed again, and waits until it is ready.
func (s *Server) Restart(t hosts.T) {
	t.Helper()
	<-s.done
	s.launch(t, "", "--run-dir", s.Dir+"-run", "--device-filter", "no-device")
	s.AwaitReady(t)
}

// end kills the server, and shows the end of its log where the test failed.
func (s *Server) end(t hosts.T) {
	if s.cmd != nil && s.cmd.Process != nil {
		s.Kill(t)
		<-s.done
	}
	if log, err := os.ReadFile(s.Log()); err == nil && t.Failed() {
		t.Logf("the end of the log of server %s:\n%s", s.Name, log[max(0, len(log)-8<<10):])
	}
}

// AwaitReady waits until the server says that it is ready.
func (s *Server) AwaitReady(t hosts.T) {
	t.Helper()
	home.Await(t, "server "+s.Name+" to be ready", func() error {
		select {
		case <-s.done:
			return errors.New("it has ended")
		default:
		}
		_, err := s.Get(context.Background(), "/readyz")
		return err
	})
}

// Get asks the server for a path of its API, such as /metrics.
func (s *Server) Get(ctx context.Context, path string) (string, error) {
	config, err := Masters(s.Dir, s.APIPort)
	if err != nil {
		return "", err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	body, err := client.RESTClient().Get().AbsPath(path).DoRaw(ctx)
	return string(body), err
}

// Metric reads one counter of the server, such as `holdfast_fenced_writes_total{result="refused"}`; zero when it is not there.
func (s *Server) Metric(ctx context.Context, name string) (float64, error) {
	text, err := s.Get(ctx, "/metrics")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(strings.TrimSpace(line), name+" "); ok {
			return strconv.ParseFloat(value, 64)
		}
	}
	return 0, nil
}

// Config reaches the API of the server with the rights of a server.
func (s *Server) Config(t hosts.T) *rest.Config {
	t.Helper()
	config, err := Masters(s.Dir, s.APIPort)
	if err != nil {
		t.Fatalf("%v", err)
	}
	return config
}

// Masters makes the means to reach a server's API with the rights of a server, from its data directory. Such requests are answered also
// while the server starts, and does not serve all kinds yet.
func Masters(dir string, apiPort int) (*rest.Config, error) {
	return reach(dir, apiPort, access.GroupMasters)
}

// Admins is Masters with the rights of an administrator.
func Admins(dir string, apiPort int) (*rest.Config, error) {
	return reach(dir, apiPort, access.GroupAdmins)
}

func reach(dir string, apiPort int, group string) (*rest.Config, error) {
	authority, err := pki.OpenAuthority(filepath.Join(dir, "pki"))
	if err != nil {
		return nil, err
	}
	pair, err := authority.NewPair(pki.Leaf{User: "holdfast:test", Groups: []string{group}}, time.Now())
	if err != nil {
		return nil, err
	}
	key, err := pair.KeyPEM()
	if err != nil {
		return nil, err
	}
	return &rest.Config{
		Host: fmt.Sprintf("https://127.0.0.1:%d", apiPort), QPS: -1,
		TLSClientConfig: rest.TLSClientConfig{CAData: authority.CertPEM(), CertData: pair.CertPEM(), KeyData: key},
	}, nil
}

// Etcd reaches the server's member of etcd itself, past the API. The caller closes it.
func (s *Server) Etcd(t hosts.T) *clientv3.Client {
	t.Helper()
	client, err := DialEtcd(s.Dir, s.etcdPort)
	if err != nil {
		t.Fatalf("%v", err)
	}
	return client
}

// DialEtcd reaches the member of etcd of a server of this machine, with what its data directory holds. The caller closes it.
func DialEtcd(dataDir string, port int) (*clientv3.Client, error) {
	dir := filepath.Join(dataDir, "pki")
	info := transport.TLSInfo{CertFile: pki.CertFile(dir, "etcd"), KeyFile: pki.KeyFile(dir, "etcd"), TrustedCAFile: pki.CertFile(dir, "ca")}
	tls, err := info.ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("while reading the certificate of etcd: %w", err)
	}
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{"127.0.0.1:" + strconv.Itoa(port)}, TLS: tls, DialTimeout: 5 * time.Second})
	if err != nil {
		return nil, fmt.Errorf("while connecting to etcd: %w", err)
	}
	return client, nil
}
