package control_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/absence"
	"github.com/holdfast-storage/holdfast/internal/instance"
)

// The classes of strings that a host reports.
const (
	// aWord: letters, digits and few signs, such as a version, a UUID, an address. A name of an enumeration is one.
	aWord = "word"
	// aLine: text of one line, such as a model. It is nowhere a name of a file, an argument or an option.
	aLine = "line"
	// aText: text of several lines.
	aText = "text"
	// anID: a line that begins with a letter or digit, and so is no option and no path.
	anID = "id"
	// aPath: an absolute path.
	aPath = "path"
)

// untrusted lists every string that a host may write, with a value that is good and its class. Somebody who has a host's
// certificate writes what he likes there.
var untrusted = map[string]struct{ good, class string }{
	"Host addresses[]":                {"10.0.0.9", aWord},
	"Host agentVersion":               {"1.2.3", aWord},
	"Host bootID":                     {"8f0f1d4e-4f8a-4f0e-8d55-9d7d3b1f0a11", aWord},
	"Host runtime":                    {"Detached", aWord},
	"Host packages{}":                 {"16.2.15", aWord},
	"Host devices[].id":               {"wwn-1", anID},
	"Host devices[].path":             {"/dev/sdb", aPath},
	"Host devices[].links[]":          {"/dev/disk/by-id/a", aLine},
	"Host devices[].kind":             {"Disk", aWord},
	"Host devices[].vendor":           {"ATA", aLine},
	"Host devices[].model":            {"Model 1", aLine},
	"Host devices[].serial":           {"S1", aLine},
	"Host devices[].wwn":              {"5000c500a0b1c2d3", aLine},
	"Host devices[].media":            {"Rotational", aWord},
	"Host devices[].parent":           {"wwn-2", aLine},
	"Host devices[].mountPoints[]":    {"/srv", aLine},
	"Host devices[].holders[]":        {"dm-0", aLine},
	"Host devices[].availability":     {"Unavailable", aWord},
	"Host devices[].reasons[]":        {"in use", aLine},
	"Host devices[].filesystem.type":  {"ext4", aWord},
	"Host devices[].filesystem.uuid":  {"8f0f1d4e", aWord},
	"Host devices[].filesystem.label": {"data", aLine},
	"Host devices[].ceph.fsid":        {"8f0f1d4e", aWord},
	"Host devices[].ceph.osdUUID":     {"8f0f1d4e", aWord},
	"Host devices[].ceph.part":        {"db", aWord},
	"Host facts.kernel":               {"6.1.0-18-amd64", aLine},
	"Host facts.os":                   {"Debian GNU/Linux 12 (bookworm)", aLine},
	"Host facts.architecture":         {"x86_64", aLine},
	"Host facts.vendor":               {"Supermicro", aLine},
	"Host facts.model":                {"SYS-6029P-TR", aLine},
	"Host facts.cpuModel":             {"Intel(R) Xeon(R) Silver 4110 CPU @ 2.10GHz", aLine},
	"Host facts.interfaces[].name":    {"eth0", aLine},
	"Host facts.interfaces[].mac":     {"02:00:00:00:00:01", aLine},

	"Host facts.interfaces[].addresses[]": {"10.0.0.9/24", aLine},

	"Host foreign[].type":    {"ceph-osd", aWord},
	"Host foreign[].id":      {"3", aLine},
	"Host foreign[].cluster": {"8f0f1d4e", aWord},
	"Host foreign[].data":    {"/var/lib/ceph/osd/ceph-3", aLine},
	"Host foreign[].unit":    {"ceph-osd@3.service", aLine},

	"Daemon state":           {"Running", aWord},
	"Daemon message":         {"it runs", aText},
	"Daemon version":         {"16.2.15", aLine},
	"Daemon lastExit.reason": {"exit code 1", aLine},
	"Daemon lastExit.log":    {"the end", aText},
	"Daemon report":          {"{}", aText},
	"Daemon service.state":   {"OutOfService", aWord},
	"Daemon service.reason":  {"MarkedOut", aWord},
	"Daemon service.message": {"it is marked out", aLine},
	"Daemon service.next":    {"run 'holdfast ceph osd in 2'", aLine},

	"Daemon lastExit.cause":   {"PortInUse", aWord},
	"Daemon lastExit.message": {"port 3300 is taken by nginx (process 7)", aLine},
	"Daemon lastExit.next":    {"stop nginx on host h1", aLine},
}

// hostile are the values that are sent in the place of each, by what they would do. An empty list of classes: refused in all.
var hostile = []struct {
	name, value string
	harmless    []string
}{
	{"a line of ceph.conf", "10.0.0.4\n[osd.1]\nlog_file = /tmp/x\n[global]\n# ", []string{aText}},
	{"NUL", "a\x00b", nil},
	{"an escape sequence", "\x1b[2J", nil},
	{"an escape of one byte", "\u009b2J", nil},
	{"a change of direction", "gpj.\u202eexe", nil},
	{"a carriage return", "a\rb", nil},
	{"quotes", `a"b'c` + "`d`", []string{aLine, aText, anID}},
	{"an option", "--conf=/tmp/x", []string{aLine, aText}},
	{"a path outside", "../../etc/passwd", []string{aLine, aText}},
	{"a variable", "${DATA}", []string{aLine, aText}},
	{"a megabyte", strings.Repeat("a", 1<<20), nil},
}

// stringsOf lists the paths of all strings in a type, as untrusted has them. Conditions, whose fields Kubernetes bounds and the
// server compares, and numbers and times are none.
func stringsOf(t reflect.Type, at string, found *[]string) {
	switch {
	case t == reflect.TypeFor[metav1.Condition]() || t == reflect.TypeFor[metav1.MicroTime]() || t == reflect.TypeFor[metav1.Time]() ||
		t.Name() == "Quantity":
	case t.Kind() == reflect.Pointer:
		stringsOf(t.Elem(), at, found)
	case t.Kind() == reflect.Slice:
		stringsOf(t.Elem(), at+"[]", found)
	case t.Kind() == reflect.Map:
		stringsOf(t.Elem(), at+"{}", found)
	case t.Kind() == reflect.String:
		*found = append(*found, at)
	case t.Kind() == reflect.Struct:
		for i := range t.NumField() {
			name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
			sep := "."
			if !strings.Contains(at, " ") {
				sep = " "
			}
			stringsOf(t.Field(i).Type, at+sep+name, found)
		}
	}
}

// TestUntrusted_isListed: whoever adds a string that hosts write has to say here what it may hold.
func TestUntrusted_isListed(t *testing.T) {
	var have []string
	stringsOf(reflect.TypeFor[api.HostStatus](), "Host", &have)
	stringsOf(reflect.TypeFor[api.DaemonStatus](), "Daemon", &have)
	for _, at := range have {
		if _, ok := untrusted[at]; !ok {
			t.Errorf("a host writes %s, and untrusted does not say what it may hold", at)
		}
	}
	for at := range untrusted {
		if !slices.Contains(have, at) {
			t.Errorf("untrusted has %s, which no host writes", at)
		}
	}
}

// put sets a value at a path below status, and makes what is on the way there. What else an item of a
// list needs is in needs.
func put(status map[string]any, at string, value any) {
	needs := map[string]map[string]any{
		"devices":    {"id": "wwn-1", "availability": "Unavailable"},
		"interfaces": {"name": "eth0", "up": true},
		"foreign":    {"type": "ceph-osd", "id": "3", "pid": int64(1), "started": "2026-01-01T00:00:00.000000Z"},
		"filesystem": {"type": "ext4"},
		"lastExit":   {"reason": "exit code 1", "time": "2026-01-01T00:00:00.000000Z"},
		"service": {
			"state": "Limited", "reason": "NearFull", "message": "it is nearly full", "since": "2026-01-01T00:00:00Z",
		},
	}
	head, rest, deeper := strings.Cut(at, ".")
	name, isMap := strings.CutSuffix(head, "{}")
	name, isList := strings.CutSuffix(name, "[]")
	below := value
	if deeper {
		next := map[string]any{}
		for k, v := range needs[name] {
			next[k] = v
		}
		put(next, rest, value)
		below = next
	}
	switch {
	case isList:
		below = []any{below}
	case isMap:
		below = map[string]any{"ceph": below}
	}
	status[name] = below
}

// TestUntrusted sends each hostile value as each string that a host may write, with a host's own certificate, to a real server.
func TestUntrusted(t *testing.T) {
	s, config := sharedServer(t)
	admin := newClient(t, s.Config())
	ns := newNamespace(t, admin)
	name := "untrusted"
	daemon := daemonOn(ns, "mine", name, "s1")
	if err := admin.Create(t.Context(), daemon); err != nil {
		t.Fatal(err)
	}
	own := newHost(t, s, config, name).config
	own.QPS = -1 // nothing holds an attacker back
	host := newClient(t, own)
	patch := func(o client.Object, body []byte) error {
		return host.Status().Patch(t.Context(), o, client.RawPatch("application/merge-patch+json", body))
	}
	write := func(at string, value any) error {
		kind, field, _ := strings.Cut(at, " ")
		status := map[string]any{}
		put(status, field, value)
		body, err := json.Marshal(map[string]any{"status": status})
		if err != nil {
			t.Fatal(err)
		}
		var o client.Object = &api.Host{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if kind == "Daemon" {
			o = daemon.DeepCopy()
		}
		return patch(o, body)
	}
	for at, x := range untrusted {
		if err := write(at, x.good); err != nil {
			t.Errorf("%s: the good value %q is refused: %v", at, x.good, err)
		}
		for _, h := range hostile {
			err := write(at, h.value)
			if harmless := slices.Contains(h.harmless, x.class); err == nil && !harmless {
				t.Errorf("%s takes %s", at, h.name)
			} else if err != nil && harmless && x.class != aPath {
				t.Errorf("%s is %s and refuses %s: %.300v", at, x.class, h.name, err)
			}
		}
	}
	for open, shut := range map[string]string{`{"a":`: "}", "[": "]"} {
		body := `{"status":{"addresses":` + strings.Repeat(open, 20_000) + "1" + strings.Repeat(shut, 20_000) + "}}"
		if err := patch(&api.Host{ObjectMeta: metav1.ObjectMeta{Name: name}}, []byte(body)); err == nil {
			t.Error("a value that is 20,000 levels deep is taken")
		}
	}
}

// TestUntrusted_leadersConditions: a host does not say of itself that it is heard.
func TestUntrusted_leadersConditions(t *testing.T) {
	s, config := sharedServer(t)
	name := "boaster"
	host := newClient(t, newHost(t, s, config, name).config)
	condition := func(kind string) error {
		body := fmt.Sprintf(`{"status":{"conditions":[{"type":%q,"status":"True","reason":"Connected","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`, kind)
		return host.Status().Patch(t.Context(), &api.Host{ObjectMeta: metav1.ObjectMeta{Name: name}}, client.RawPatch("application/merge-patch+json", []byte(body)))
	}
	if err := condition(api.HostAgentConnected); err == nil {
		t.Error("a host may write " + api.HostAgentConnected)
	}
	if err := condition(api.HostClockInSync); err != nil {
		t.Errorf("a host may not write its own condition: %v", err)
	}
}

// TestUntrusted_lease: of the annotations of its Lease a host writes two, in their form, and nothing hostile.
func TestUntrusted_lease(t *testing.T) {
	s, config := sharedServer(t)
	name := "leaser"
	host := newClient(t, newHost(t, s, config, name).config)
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "holdfast-system", Name: "host-" + name}}
	if err := host.Create(t.Context(), lease.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	annotate := func(key, value string) error {
		body, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]any{key: value}}})
		if err != nil {
			t.Fatal(err)
		}
		return host.Patch(t.Context(), lease.DeepCopy(), client.RawPatch("application/merge-patch+json", body))
	}
	good, err := instance.New("")
	if err != nil {
		t.Fatal(err)
	}
	if err := annotate(instance.Annotation, good.String()); err != nil {
		t.Errorf("the instance of an agent is refused: %v", err)
	}
	if err := annotate("example.com/other", good.String()); err == nil {
		t.Error("another annotation is taken")
	}
	if err := annotate(instance.Farewell, string(absence.Stopped)); err != nil {
		t.Errorf("the farewell of an agent is refused: %v", err)
	}
	if err := annotate(instance.Farewell, "anything else"); err == nil {
		t.Error("any text is taken as a farewell")
	}
	for _, h := range hostile {
		for _, value := range []string{h.value, good.String() + h.value, strings.Replace(good.String(), "address=", "address="+h.value, 1)} {
			if err := annotate(instance.Annotation, value); err == nil {
				t.Errorf("%s is taken as an instance: %.100q", h.name, value)
			}
		}
	}
}
