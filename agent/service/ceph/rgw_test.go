package ceph

import (
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-storage/holdfast/agent/service"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/rgw"
)

// fakeAdmin is a radosgw-admin with the users that lie in a directory as files, and their buckets beside them. It notes its arguments.
const fakeAdmin = `#!/bin/sh
dir=$(dirname "$0")/store; shift 6
echo "$@" >> "$dir/args"
case "$1 $2" in
"metadata get") cat "$dir/$3" 2>/dev/null || exit 2;;
"metadata put") cat > "$dir/$3";;
"bucket list") cat "$dir/buckets" 2>/dev/null || echo '[]';;
"user rm") rm "$dir/user:$4";;
"zone get") test -e "$dir/zone" || exit 2;;
"zone set"|"zonegroup set") cp "$6" "$dir/$1";;
*) echo "unknown: $@" >&2; exit 22;;
esac
`

func newGateway(t *testing.T) (l *service.Local, store string) {
	t.Helper()
	bin := t.TempDir()
	store = filepath.Join(bin, "store")
	if err := os.Mkdir(store, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(bin, "radosgw-admin"), []byte(fakeAdmin), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	return &service.Local{
		Daemon: &api.Daemon{Spec: api.DaemonSpec{Type: rgw.Type, ID: "s3-a"}}, Data: t.TempDir(), Run: t.TempDir(),
		Parameters: map[string]string{rgw.ParamStore: "s3"},
	}, store
}

func userCommand(verb string, params ...string) service.Command {
	cmd := service.Command{
		Verb: verb, Object: "objectstoreuser/app", Secret: map[string][]byte{rgw.SecretSecretKey: []byte("very-secret")},
		Params: map[string]string{rgw.ParamUser: "app", rgw.ParamOwner: "uid", rgw.ParamWord: "w1", rgw.ParamMaxBuckets: "2", rgw.ParamDisplayName: "App"},
	}
	for i := 0; i < len(params); i += 2 {
		cmd.Params[params[i]] = params[i+1]
	}
	return cmd
}

func perform(t *testing.T, l *service.Local, cmd service.Command) string {
	t.Helper()
	message, err := RGW{}.Perform(t.Context(), l, cmd)
	if err != nil {
		return "error: " + err.Error()
	}
	return message
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return string(text)
}

// A user is written with its keys, quotas and capabilities; what else the store has of it stays, and no argument is a secret.
func TestRGW_setUser(t *testing.T) {
	l, store := newGateway(t)
	if got := perform(t, l, userCommand(rgw.VerbUserSet, rgw.ParamMaxObjects, "3", rgw.ParamCaps, "buckets=*;usage=read")); strings.HasPrefix(got, "error") {
		t.Fatal(got)
	}
	text := readFile(t, filepath.Join(store, "user:app"))
	for _, want := range []string{
		`"access_key":"` + rgw.AccessKey("uid") + `"`, `"secret_key":"very-secret"`, `"max_buckets":2`, `"max_objects":3`, `"enabled":true`,
		`{"perm":"*","type":"buckets"},{"perm":"read","type":"usage"}`, `"display_name":"App"`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is missing in %s", want, text)
		}
	}
	if args := readFile(t, filepath.Join(store, "args")); strings.Contains(args, "very-secret") {
		t.Errorf("arguments %s", args)
	}
	theirs := strings.Replace(text, `"display_name"`, `"mfa_ids":["m"],"big":9007199254740993,"display_name"`, 1)
	if err := os.WriteFile(filepath.Join(store, "user:app"), []byte(theirs), 0o600); err != nil {
		t.Fatal(err)
	}
	perform(t, l, userCommand(rgw.VerbUserSet))
	if text := readFile(t, filepath.Join(store, "user:app")); !strings.Contains(text, `"mfa_ids":["m"]`) || !strings.Contains(text, "9007199254740993") ||
		strings.Contains(text, `"enabled":true`) {
		t.Errorf("%s", text)
	}
}

// A user with a key of somebody else is left alone, whatever is asked; one without any key is taken over.
func TestRGW_foreignUser(t *testing.T) {
	l, store := newGateway(t)
	const foreign = `{"key":"user:app","data":{"user_id":"app","keys":[{"user":"app","access_key":"THEIRS","secret_key":"s"}]}}`
	path := filepath.Join(store, "user:app")
	if err := os.WriteFile(path, []byte(foreign), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := perform(t, l, userCommand(rgw.VerbUserSet)); !strings.Contains(got, "a key that was not made here (THEIRS)") {
		t.Error(got)
	}
	if got := perform(t, l, userCommand(rgw.VerbUserRemove)); !strings.Contains(got, "no user app that was made here") || readFile(t, path) != foreign {
		t.Error(got)
	}
	if err := os.WriteFile(path, []byte(`{"key":"user:app","data":{"user_id":"app","keys":[],"swift_keys":[]}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := perform(t, l, userCommand(rgw.VerbUserSet)); got != "user app is as declared" {
		t.Error(got)
	}
}

// A user with buckets stays without keys where it is to be kept, and holds its removal up where it is not.
func TestRGW_removeUser(t *testing.T) {
	l, store := newGateway(t)
	perform(t, l, userCommand(rgw.VerbUserSet))
	if err := os.WriteFile(filepath.Join(store, "buckets"), []byte(`["one","two"]`), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := perform(t, l, userCommand(rgw.VerbUserRemove)); !strings.Contains(got, "error: it has 2 buckets (one, two)") {
		t.Error(got)
	}
	if got := perform(t, l, service.Command{Verb: rgw.VerbFindBuckets}); !strings.Contains(got, "error: it has 2 buckets (one, two)") {
		t.Error(got)
	}
	perform(t, l, userCommand(rgw.VerbUserRemove, rgw.ParamKeep, "true"))
	if text := readFile(t, filepath.Join(store, "user:app")); !strings.Contains(text, `"keys":[]`) {
		t.Errorf("%s", text)
	}
	if err := os.Remove(filepath.Join(store, "buckets")); err != nil {
		t.Fatal(err)
	}
	perform(t, l, userCommand(rgw.VerbUserRemove))
	if text := readFile(t, filepath.Join(store, "user:app")); text != "" {
		t.Errorf("%s", text)
	}
	if got := perform(t, l, userCommand(rgw.VerbUserRemove)); strings.HasPrefix(got, "error") {
		t.Errorf("the second time: %s", got)
	}
	if got := perform(t, l, service.Command{Verb: "rgw fly"}); !strings.Contains(got, "upgrade Holdfast") {
		t.Error(got)
	}
}

// startGateway runs the command of a gateway, with a program in the place of radosgw that ends at once.
func startGateway(t *testing.T, l *service.Local, serves string) {
	t.Helper()
	words := strings.NewReplacer("${DATA}", l.Data, "${RUN}", l.Run)
	command := rgw.Command("client.rgw.s3-a")
	for i := range command {
		command[i] = words.Replace(command[i])
	}
	at := slices.Index(command, "radosgw")
	if err := os.WriteFile(filepath.Join(l.Data, rgw.FileServes), []byte(serves), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), command[0], slices.Replace(command[1:], at-1, at, "true")...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// The layout is made once; a port that is taken is told before the process starts; and a gateway is up when it answers.
func TestRGW_starts(t *testing.T) {
	l, store := newGateway(t)
	server := httptest.NewServer(http.NotFoundHandler())
	l.Parameters[rgw.ParamURL] = server.URL
	if err := (RGW{}).ConfigureLocalService(t.Context(), l); err == nil || !strings.Contains(err.Error(), "has the port") {
		t.Errorf("%v", err)
	}
	at := server.Listener.Addr().String()
	server.Close()
	for name, text := range map[string]string{rgw.FileZone: rgw.Zone("s3"), rgw.FileZonegroup: rgw.Zonegroup("s3")} {
		if err := os.WriteFile(filepath.Join(l.Data, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if err := (RGW{}).ConfigureLocalService(t.Context(), l); err != nil {
			t.Fatal(err)
		}
	}
	startGateway(t, l, "http://"+at)
	if args := readFile(t, filepath.Join(store, "args")); strings.Count(args, "zone set") != 1 || readFile(t, filepath.Join(store, "zone")) != rgw.Zone("s3") {
		t.Errorf("%s", args)
	}
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	again := &httptest.Server{Listener: listener, Config: &http.Server{Handler: http.NotFoundHandler()}} //nolint:gosec // a test's
	again.Start()
	defer again.Close()
	perform(t, l, userCommand(rgw.VerbUserSet))
	l.PID = 7
	text, err := RGW{}.Report(t.Context(), l)
	if err != nil {
		t.Fatal(err)
	}
	r := rgw.Report{}
	if err := json.Unmarshal([]byte(text), &r); err != nil || !r.Up || r.PID != 7 || r.Serves != "http://"+at || r.Done["objectstoreuser/app"] != "w1" || strings.Contains(text, "very-secret") {
		t.Errorf("%s, %v", text, err)
	}
	l.Parameters[rgw.ParamURL] = "http://" + at
	if err := os.Remove(filepath.Join(l.Run, rgw.FileServes)); err != nil {
		t.Fatal(err)
	}
	if text, err := (RGW{}).Report(t.Context(), l); err != nil || !strings.Contains(text, `"up":true`) || strings.Contains(text, `"serves"`) {
		t.Errorf("of a process that left no note: %s, %v", text, err)
	}
}

// A report never names what the previous process served: the leader would restart the gateway a second time.
func TestRGW_noteOfThePredecessor(t *testing.T) {
	l, _ := newGateway(t)
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	want := server.URL + " sha256:new"
	// before is another server, or one that answers: the new process writes its note when it is asked.
	for name, status := range map[string]int{
		"another address": http.StatusServiceUnavailable, "another certificate": http.StatusNotFound,
	} {
		before := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			startGateway(t, l, want)
			w.WriteHeader(status)
		}))
		startGateway(t, l, before.URL+" sha256:old")
		text, err := RGW{}.Report(t.Context(), l)
		before.Close()
		if err != nil || !strings.Contains(text, `"up":true`) || !strings.Contains(text, want) {
			t.Errorf("%s: %s, %v", name, text, err)
		}
	}
}
