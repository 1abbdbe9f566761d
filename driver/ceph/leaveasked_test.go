package ceph

import (
	"slices"
	"testing"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// asks annotates a Daemon as a person does.
func (f *fakeWorld) asks(name, annotation string) *api.Daemon {
	d := f.daemons[name]
	if d.Annotations == nil {
		d.Annotations = map[string]string{}
	}
	d.Annotations[annotation] = f.now.Format("2006-01-02T15:04:05Z07:00")
	return d
}

// isAsked says whether a daemon is there that was asked to leave.
func (f *fakeWorld) isAsked(name string) bool {
	d := f.daemons[name]
	return d != nil && d.Annotations[api.AnnotationLeave] != ""
}

// hostsOf are the hosts of the daemons of a type that stay.
func (f *fakeWorld) hostsOf(daemonType string) (hosts []string) {
	for _, d := range f.daemonsOf(daemonType) {
		if d.DeletionTimestamp == nil {
			hosts = append(hosts, d.Spec.Host)
		}
	}
	slices.Sort(hosts)
	return hosts
}

// A daemon that is asked to leave leaves when another one has taken its place, elsewhere where a host is free.
func TestLeave_moves(t *testing.T) {
	for name, tt := range map[string]struct {
		daemon, daemonType string
		hosts              []string // where daemons of the type are afterwards; nil for anywhere but where it was
	}{
		"an active mgr":  {"c-mgr-a", TypeMgr, nil},
		"a standby mgr":  {"c-mgr-b", TypeMgr, nil},
		"a mon":          {"c-mon-a", TypeMon, []string{"h2", "h3", "h4"}},
		"an active MDS":  {"c-mds-home-a", TypeMDS, nil},
		"a standby MDS":  {"c-mds-home-b", TypeMDS, nil},
		"an MDS of many": {"c-mds-home-a", TypeMDS, nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := fourHosts()
			w.filesystems = append(w.filesystems, filesystemOf("home", func(*api.Filesystem) {}))
			f := withFake(w)
			f.settle(t)
			before := len(f.daemonsOf(tt.daemonType))
			was := f.asks(tt.daemon, api.AnnotationLeave)
			if p := f.settle(t); !p.Done {
				t.Errorf("%v", decisions(p))
			}
			got := f.hostsOf(tt.daemonType)
			switch {
			case f.isAsked(tt.daemon) || len(got) != before:
				t.Errorf("%s is there: %v; they are on %v, and %d were there", tt.daemon, f.isAsked(tt.daemon), got, before)
			case tt.hosts != nil && !slices.Equal(got, tt.hosts), tt.hosts == nil && slices.Contains(got, was.Spec.Host):
				t.Errorf("they are on %v, and it was on %s", got, was.Spec.Host)
			}
		})
	}
}

// Where no other host is free one of several goes, and a new one is made in its place; the only one stays, and
// so does an OSD.
func TestLeave_nowhereElse(t *testing.T) {
	for name, tt := range map[string]struct {
		daemon string
		reason api.Reason // why it stays; empty where it goes
	}{
		"a mon":   {"c-mon-a", api.ReasonNoOtherHost},
		"a mgr":   {"c-mgr-a", ""},
		"an MDS":  {"c-mds-home-a", ""},
		"an OSD":  {"c-osd-0", api.ReasonUnsupported},
		"one MDS": {"c-mds-one-a", api.ReasonNoOtherHost},
	} {
		t.Run(name, func(t *testing.T) {
			w := threeHosts()
			w.cluster.Spec.Ceph.Mgr.Count = 3
			w.filesystems = append(w.filesystems, filesystemOf("home", func(x *api.Filesystem) {
				x.Spec.Placement = *byPattern("h[12]")
			}), filesystemOf("one", func(x *api.Filesystem) {
				x.Spec.StandbyMDS, x.Spec.Placement = numberOf(0), *byPattern("h2")
			}))
			f := withFake(w)
			f.settle(t)
			was := f.asks(tt.daemon, api.AnnotationLeave)
			all := len(f.daemons)
			p := f.settle(t)
			if stays := f.isAsked(tt.daemon); stays != (tt.reason != "") || len(f.daemons) != all {
				t.Errorf("it stays: %v; %d daemons, and %d before", stays, len(f.daemons), all)
			}
			if got := reasonOf(p, api.VerdictSkip, label(was)); got != tt.reason {
				t.Errorf("%q of %v", got, decisions(p))
			}
		})
	}
}
