package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// startTimeout bounds the start of the server.
const startTimeout = time.Minute

// server is the real server, in a process of its own.
type server struct {
	dir    string
	ports  []string
	cmd    *exec.Cmd
	config *rest.Config
	http   *http.Client
	ended  chan error
}

// startServer founds a control plane in dir and returns when its API is ready.
func startServer(ctx context.Context, dir string) (*server, error) {
	ports, err := freePorts(ctx, 3)
	if err != nil {
		return nil, err
	}
	s := &server{dir: dir, ports: ports}
	return s, s.start(ctx, "--init")
}

// restart ends the server and starts it again, with what it had.
func (s *server) restart(ctx context.Context) error {
	if err := s.stop(); err != nil {
		return err
	}
	return s.start(ctx)
}

// start starts the server and returns when its API is ready.
func (s *server) start(ctx context.Context, founding ...string) error {
	log, err := os.OpenFile(within(s.dir, "server.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	data := within(s.dir, "server")
	args := append([]string{
		asServer, "server", "--name", "server", "--address", "127.0.0.1",
		"--data-dir", data, "--run-dir", within(s.dir, "run"), "--device-filter", "none",
		"--api-port", s.ports[0], "--etcd-peer-port", s.ports[1], "--etcd-client-port", s.ports[2],
	}, founding...)
	cmd := exec.Command("/proc/self/exe", args...) //nolint:noctx // stop ends it
	cmd.Dir, cmd.Stdout, cmd.Stderr = s.dir, log, log
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("while starting the server: %w", err)
	}
	ended := make(chan error, 1)
	s.cmd, s.ended = cmd, ended
	go func() { ended <- cmd.Wait() }()
	if err := s.reach(ctx, within(data, "admin.kubeconfig")); err != nil {
		return errors.Join(err, s.stop())
	}
	return nil
}

func freePorts(ctx context.Context, n int) ([]string, error) {
	var ports []string
	for range n {
		l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer l.Close()
		ports = append(ports, strconv.Itoa(l.Addr().(*net.TCPAddr).Port))
	}
	return ports, nil
}

// reach waits until the administrator reaches the API.
func (s *server) reach(ctx context.Context, kubeconfig string) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for {
		err := s.tryReach(ctx, kubeconfig)
		if err == nil {
			return nil
		}
		select {
		case ended := <-s.ended:
			s.ended <- ended
			return fmt.Errorf("the server has ended; see server.log: %w", errors.Join(ended, err))
		case <-ctx.Done():
			return fmt.Errorf("while waiting for the server: %w", err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func (s *server) tryReach(ctx context.Context, kubeconfig string) (err error) {
	if s.config, err = clientcmd.BuildConfigFromFlags("", kubeconfig); err != nil {
		return err
	}
	s.config.QPS = -1
	if s.http, err = rest.HTTPClientFor(s.config); err != nil {
		return err
	}
	_, err = s.get(ctx, "/readyz")
	return err
}

// get reads what the server shows at a path.
func (s *server) get(ctx context.Context, path string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.config.Host+path, nil)
	if err != nil {
		return nil, err
	}
	response, err := s.http.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("while reading %s: %s", path, response.Status)
	}
	return body, err
}

// metrics are the values that the server shows at /metrics, by name and labels as they are written there.
func (s *server) metrics(ctx context.Context) (map[string]float64, error) {
	text, err := s.get(ctx, "/metrics")
	if err != nil {
		return nil, err
	}
	return parseMetrics(string(text))
}

// parseMetrics reads Prometheus' text format, as far as the server uses it: no timestamps.
func parseMetrics(text string) (map[string]float64, error) {
	values := map[string]float64{}
	lines := bufio.NewScanner(strings.NewReader(text))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := lines.Text()
		at := strings.LastIndexByte(line, ' ')
		if at < 0 || line[0] == '#' {
			continue
		}
		value, err := strconv.ParseFloat(line[at+1:], 64)
		if err != nil {
			return nil, fmt.Errorf("while reading the metrics: %w", err)
		}
		values[line[:at]] = value
	}
	return values, lines.Err()
}

// profile writes a profile of the server to a file.
func (s *server) profile(ctx context.Context, path, file string) error {
	data, err := s.get(ctx, path)
	if err != nil {
		return err
	}
	return os.WriteFile(file, data, 0o644)
}

// stop ends the server.
func (s *server) stop() error {
	_ = s.cmd.Process.Signal(os.Interrupt) // fails only when it has ended
	select {
	case err := <-s.ended:
		return err
	case <-time.After(10 * time.Second):
		_ = s.cmd.Process.Kill()
		<-s.ended
		return errors.New("the server did not end within 10 s, and was killed")
	}
}
