package docs

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/holdfast-storage/holdfast/api/crd"
	"github.com/holdfast-storage/holdfast/control"
	"github.com/holdfast-storage/holdfast/driver/ceph/monset"
	"github.com/holdfast-storage/holdfast/internal/ganesha"
	"github.com/holdfast-storage/holdfast/internal/glusterd"
	"github.com/holdfast-storage/holdfast/internal/torus"
)

// ofOthers are ports that are no constants: the ranges of ms_bind_port_min and ms_bind_port_max in
// Ceph 16 and later, the first port of a brick (option base-port of glusterd), and the operator's
// flag --listen.
var ofOthers = []int{6800, 7300, 7568, 49152, 8081}

var number = regexp.MustCompile(`\d{4,5}`)

// TestPorts: the first column of the table of ports has the constants of the program, the defaults
// of the kinds, and what the storage systems choose, and nothing else.
func TestPorts(t *testing.T) {
	text, err := os.ReadFile(root + "/docs/reference/networks.md")
	if err != nil {
		t.Fatal(err)
	}
	listed := map[int]bool{}
	for line := range strings.Lines(string(text)) {
		if cells := strings.Split(line, "|"); len(cells) > 5 {
			column := strings.ReplaceAll(cells[1], "Ceph 16", "")
			for _, found := range number.FindAllString(column, -1) {
				port, _ := strconv.Atoi(found)
				listed[port] = true
			}
		}
	}
	for _, port := range append(constants(t), ofOthers...) {
		if !listed[port] {
			t.Errorf("docs/reference/networks.md has no port %d", port)
		}
		delete(listed, port)
	}
	for port := range listed {
		t.Errorf("docs/reference/networks.md has the port %d, which nothing uses", port)
	}
}

// constants are the ports that the program has.
func constants(t *testing.T) []int {
	t.Helper()
	all := []int{
		control.DefaultAPIPort, control.DefaultEtcdPeerPort, control.DefaultEtcdClientPort,
		ganesha.Port, glusterd.Port, torus.EtcdClientPort, torus.EtcdPeerPort,
		defaultPort(t, "StorageNode", "torus", "port"), defaultPort(t, "ObjectStore", "gateways", "port"),
	}
	for _, text := range []string{monset.PortV2, monset.PortV1, maxBrickPort(t)} {
		port, err := strconv.Atoi(text)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, port)
	}
	return all
}

// maxBrickPort is the last port that a brick gets, as glusterd is told.
func maxBrickPort(t *testing.T) string {
	t.Helper()
	found := regexp.MustCompile(`max-port (\d+)`).FindStringSubmatch(glusterd.Volfile("10.0.0.1"))
	if found == nil {
		t.Fatal("glusterd is told no last port")
	}
	return found[1]
}

// defaultPort is the default of a field of a kind's spec.
func defaultPort(t *testing.T, kind string, path ...string) int {
	t.Helper()
	kinds, err := crd.All()
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range kinds {
		if k.Spec.Names.Kind != kind {
			continue
		}
		field := k.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
		for _, name := range path {
			field = field.Properties[name]
		}
		if field.Default == nil {
			t.Fatalf("%s has no default for %v", kind, path)
		}
		port, err := strconv.Atoi(string(field.Default.Raw))
		if err != nil {
			t.Fatal(err)
		}
		return port
	}
	t.Fatalf("there is no kind %s", kind)
	return 0
}
