package ceph

import (
	"strings"
	"testing"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/ganesha"
	"github.com/holdfast-storage/holdfast/internal/rgw"
)

// uninstall removes the program of a type of daemons from hosts; none for all.
func (f *fakeWorld) uninstall(daemonType string, hosts ...string) {
	for i := range f.hosts {
		if len(hosts) == 0 || strings.Contains(strings.Join(hosts, " "), f.hosts[i].Name) {
			delete(f.hosts[i].Status.Packages, daemonType)
		}
	}
}

// TestInstalled: a resource whose daemons no host can run is refused before anything is made, with
// the package and the command. It is taken up when the package is there.
func TestInstalled(t *testing.T) {
	for daemonType, x := range map[string]struct {
		declare func(*fakeWorld)
		object  string
		next    string
	}{
		TypeMDS: {
			func(f *fakeWorld) { f.filesystems = append(f.filesystems, filesystemOf("home")) }, "filesystem/home",
			"'apt-get install ceph-mds'",
		},
		rgw.Type: {
			func(f *fakeWorld) { f.objects = append(f.objects, storeOf("s3")) }, "objectstore/s3", "'apt-get install radosgw'",
		},
	} {
		t.Run(daemonType, func(t *testing.T) {
			f := poolsOn(3)
			f.install("16.2.15")
			f.settle(t)
			f.uninstall(daemonType)
			x.declare(f)
			p := f.settle(t)
			if got := word(decisions(p, api.VerdictRefuse), x.object); !strings.Contains(got, x.next) {
				t.Errorf("refused for %q", got)
			}
			if n := len(f.daemonsOfType(daemonType)); n > 0 {
				t.Errorf("%d daemons were made", n)
			}
			f.install("16.2.15")
			p = f.settle(t)
			if got := word(decisions(p, api.VerdictRefuse), x.object); got != "" || len(f.daemonsOfType(daemonType)) == 0 {
				t.Errorf("after the installation: %q, %v", got, f.daemonsOfType(daemonType))
			}
		})
	}
}

// TestInstalled_some: hosts without the program get no daemon.
func TestInstalled_some(t *testing.T) {
	f := poolsOn(3)
	f.install("16.2.15")
	f.settle(t)
	f.uninstall(TypeMDS, "h1", "h3")
	f.filesystems = append(f.filesystems, filesystemOf("home"))
	p := f.settle(t)
	for _, d := range f.daemonsOfType(TypeMDS) {
		if d.Spec.Host != "h2" {
			t.Errorf("%s is on %s", d.Name, d.Spec.Host)
		}
	}
	want := "ceph-mds is not installed on h1, h3"
	if got := word(decisions(p, api.VerdictSkip), "filesystem/home"); !strings.Contains(got, want) {
		t.Errorf("%q", got)
	}
}

func (f *fakeWorld) daemonsOfType(daemonType string) (all []*api.Daemon) {
	for _, d := range f.daemons {
		if d.Spec.Type == daemonType {
			all = append(all, d)
		}
	}
	return all
}

// TestInstalled_nfs: an export that no node can serve, because NFS-Ganesha is nowhere installed, is
// refused.
func TestInstalled_nfs(t *testing.T) {
	f := filesystemsOn(3, filesystemOf("home"))
	f.install("16.2.15")
	f.exports = append(f.exports, exportOf("data", "home"))
	p := f.settle(t)
	want := "run 'apt-get install nfs-ganesha nfs-ganesha-ceph' there"
	if got := word(decisions(p, api.VerdictRefuse), "nfsexport/data"); !strings.Contains(got, want) {
		t.Errorf("refused for %q", got)
	}
	for i := range f.hosts {
		f.hosts[i].Status.Packages[ganesha.Type] = "4.3"
	}
	p = f.settle(t)
	got := word(decisions(p, api.VerdictRefuse), "nfsexport/data")
	if got != "" || len(f.daemonsOfType(ganesha.Type)) != 1 {
		t.Errorf("after the installation: %q", got)
	}
}
