package relay

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/orch/wire"
)

// call calls a method over a socket.
func call(t *testing.T, socket, method, body string) (int, wire.Reply) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", socket)
		},
	}}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://x/"+method, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	var reply wire.Reply
	if err != nil || json.Unmarshal(text, &reply) != nil {
		t.Fatalf("%s, %v", text, err)
	}
	return response.StatusCode, reply
}

// await waits until something is so.
func await(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !is(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited too long for %s", what)
		}
	}
}

func manager(name string) *api.Daemon {
	d := &api.Daemon{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}
	d.Spec.Cluster, d.Spec.Parameters = "ceph", map[string]string{api.ParameterOrch: "born"}
	return d
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// TestRelay serves a socket for each mgr of the host as long as it is wanted: also when its
// directory is made later, or lost. Root alone may use it.
func TestRelay(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		text, _ := json.Marshal(r.URL.Path + " " + string(body))
		wire.Write(w, http.StatusOK, wire.Reply{Result: text})
	}))
	defer server.Close()
	run := t.TempDir()
	var daemons atomic.Pointer[[]*api.Daemon]
	plain := manager("plain")
	delete(plain.Spec.Parameters, api.ParameterOrch)
	daemons.Store(&[]*api.Daemon{manager("a"), plain})
	r := Relay{
		REST: &rest.Config{Host: server.URL}, Log: slog.New(slog.DiscardHandler),
		Daemons: func() []*api.Daemon { return *daemons.Load() },
		RunDir:  func(n types.NamespacedName) string { return filepath.Join(run, n.Name) },
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); r.Run(ctx) }()
	dir := filepath.Join(run, "a")
	socket := filepath.Join(dir, wire.SocketName)
	for _, d := range []string{dir, filepath.Join(run, "plain")} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	await(t, "the socket", func() bool { return exists(socket) })
	if info, err := os.Stat(socket); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	const passed = `"/holdfast/v1/orch/ns/ceph/get_hosts {\"x\":1}"`
	if _, reply := call(t, socket, "get_hosts", `{"x":1}`); string(reply.Result) != passed {
		t.Errorf("%+v", reply)
	}
	for _, method := range []string{"", "../x", "a/b"} {
		if status, reply := call(t, socket, method, ""); status == http.StatusOK || reply.Error == "" {
			t.Errorf("%q: %d, %+v", method, status, reply)
		}
	}
	long := strings.Repeat("x", wire.MaxCall+1)
	if _, reply := call(t, socket, "apply", long); !strings.Contains(reply.Error, "at most") {
		t.Errorf("%+v", reply)
	}
	if err := os.RemoveAll(dir); err != nil { // as a boot does
		t.Fatal(err)
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	await(t, "the socket again", func() bool { return exists(socket) })
	daemons.Store(&[]*api.Daemon{plain})
	await(t, "the socket to go", func() bool { return !exists(socket) })
	daemons.Store(&[]*api.Daemon{manager("a")})
	await(t, "the socket to come back", func() bool { return exists(socket) })
	stop()
	<-done
	if exists(socket) || exists(filepath.Join(run, "plain", wire.SocketName)) {
		t.Error("a socket is left")
	}
}

// TestHandler_noLeader: while no leader answers, the last answers to reads stand in, for a
// minute; anything else is an error in a sentence, whatever a server says.
func TestHandler_noLeader(t *testing.T) {
	status, text := http.StatusOK, `{"result":["first"]}`
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, text)
	}))
	h, err := newHandler(&rest.Config{Host: server.URL}, types.NamespacedName{Namespace: "ns", Name: "ceph"})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	h.now = func() time.Time { return now }
	ask := func(method, body string) wire.Reply {
		t.Helper()
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/"+method, strings.NewReader(body)))
		var reply wire.Reply
		if err := json.Unmarshal(w.Body.Bytes(), &reply); err != nil {
			t.Fatalf("%s: %v", w.Body, err)
		}
		return reply
	}
	ask("get_hosts", "{}")
	ask("apply", "{}")
	status, text = http.StatusServiceUnavailable, `{"error":"no server leads","errno":-11}`
	if r := ask("get_hosts", "{}"); string(r.Result) != `["first"]` {
		t.Errorf("%+v", r)
	}
	for _, other := range []wire.Reply{ask("get_hosts", `{"x":1}`), ask("apply", "{}")} {
		if other.Error != "no server leads" {
			t.Errorf("%+v", other)
		}
	}
	status, text = http.StatusForbidden, `{"kind":"Status","message":"host h1 has no ceph-mgr of cluster ns/ceph"}`
	if r := ask("get_hosts", "{}"); r.Errno != -13 || !strings.Contains(r.Error, "has no ceph-mgr") {
		t.Errorf("%+v", r)
	}
	status, text = http.StatusOK, "garbage"
	if r := ask("apply", "{}"); r.Error == "" {
		t.Errorf("%+v", r)
	}
	server.Close()
	if r := ask("get_hosts", "{}"); string(r.Result) != `["first"]` {
		t.Errorf("%+v", r)
	}
	now = now.Add(keptFor)
	if r := ask("get_hosts", "{}"); !strings.Contains(r.Error, "no server of Holdfast answers") || r.Errno != -11 {
		t.Errorf("%+v", r)
	}
}

// TestHandler_tooLarge: a caller that sends its whole call before it reads anything, as the module in
// ceph-mgr does, is told that the call is too large. Garbage and half a call end in no call.
func TestHandler_tooLarge(t *testing.T) {
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		wire.Write(w, http.StatusOK, wire.Reply{Result: []byte("1")})
	}))
	defer server.Close()
	socket := filepath.Join(t.TempDir(), "s")
	r := Relay{REST: &rest.Config{Host: server.URL}, Log: slog.New(slog.DiscardHandler)}
	s, err := r.open(socket, types.NamespacedName{Namespace: "ns", Name: "ceph"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	send := func(text string) string {
		c, err := net.Dial("unix", socket)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := io.WriteString(c, text); err != nil {
			t.Fatalf("%d bytes: %v", len(text), err)
		}
		_ = c.(*net.UnixConn).CloseWrite()
		said, _ := io.ReadAll(c)
		return string(said)
	}
	const head = "POST /apply HTTP/1.1\r\nHost: x\r\nContent-Length: 2097152\r\n\r\n"
	if said := send(head + strings.Repeat("x", 2<<20)); !strings.Contains(said, "too large") {
		t.Errorf("%.300s", said)
	}
	if said := send(head + "{"); !strings.Contains(said, "400 Bad Request") {
		t.Errorf("%.300s", said)
	}
	if said := send("\x00\x01garbage\r\n\r\n"); !strings.Contains(said, "400 Bad Request") {
		t.Errorf("%.300s", said)
	}
	if n := asked.Load(); n > 0 {
		t.Errorf("%d calls were passed on", n)
	}
}
