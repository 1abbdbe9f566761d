package ceph

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/ceph/monset"
)

var update = flag.Bool("update", false, "write the golden files")

func TestConf(t *testing.T) {
	three := []member{{ID: "a", Host: "h1", Address: "10.0.0.1"}, {ID: "b", Host: "h2", Address: "10.0.0.2"}, {ID: "c", Host: "h3", Address: "10.0.0.3"}}
	for _, tt := range []struct {
		name, daemon string
		facts        confFacts
		user         options
	}{
		{"mon-three-hosts", TypeMon, confFacts{
			fsid: worldUID, members: three, osds: 3, osdHosts: 3,
			network: api.NetworkSpec{Public: "10.0.0.0/24", Cluster: "10.0.1.0/24"},
		}, nil},
		{"osd-user-options", TypeOSD, confFacts{
			fsid: worldUID, members: three, osds: 12, osdHosts: 3,
		}, options{
			"global": {"osd_pool_default_size": "2", "mon_lease": "0.5"},
			"osd":    {"osd_memory_target": "939524096", "osd_crush_location": ""},
			"osd.3":  {"debug_osd": "20/20"},
		}},
		{"mgr-one-osd", TypeMgr, confFacts{fsid: worldUID, members: three[:1], osds: 1, osdHosts: 1}, nil},
		{"mon-two-osds-ipv6", TypeMon, confFacts{fsid: worldUID, members: []member{{ID: "a", Host: "h1", Address: "fd00::1"}}, osds: 2, osdHosts: 1}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := tt.facts.confText(tt.daemon, "10.0.0.1", wholeConf+tt.user.Text())
			file := filepath.Join("testdata", tt.name+".conf")
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestMembers_roundTrip(t *testing.T) {
	want := []member{{ID: "a", Host: "h1", Address: "10.0.0.1"}, {ID: "b", Host: "h2", Address: "fd00::2"}}
	monmap, hosts := monset.Params(want)
	if monmap != "a=[v2:10.0.0.1:3300,v1:10.0.0.1:6789] b=[v2:[fd00::2]:3300,v1:[fd00::2]:6789]" || hosts != "a=h1 b=h2" {
		t.Errorf("monmap %q, hosts %q", monmap, hosts)
	}
	got := monset.Parse(map[string]string{ParamMonmap: monmap, ParamMonHosts: hosts})
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(member{})); diff != "" {
		t.Error(diff)
	}
}

// TestConf_oneLine: what has an end of a line never becomes options of a ceph.conf.
func TestConf_oneLine(t *testing.T) {
	for _, address := range []string{"10.0.0.4\n[osd.1]\nlog_file = /tmp/x\n# ", "10.0.0.4\rx", "a\x00"} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%q was written", address)
				}
			}()
			(&confFacts{fsid: "f", members: []member{{ID: "a", Host: "h1", Address: address}}}).confText(TypeOSD, address, "")
		}()
	}
	// What spec.ceph.config may hold stays as it is.
	user := options{"osd": {"bluestore_rocksdb_options": "a=1,\tb=2\u0085"}}.Text()
	if text := (&confFacts{fsid: "f"}).confText(TypeOSD, "10.0.0.1", user); !strings.Contains(text, "= a=1,\tb=2") {
		t.Errorf("the tab is lost: %s", text)
	}
}
