package scenario

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/ceph"
)

// show prints one aspect of a cluster.
func (s *stage) show(what string, of string) (string, error) {
	if what == "devices" {
		return s.showDevices(of)
	}
	v, err := s.View(s.ctx, named(of))
	if err != nil {
		return "", err
	}
	var b strings.Builder
	switch what {
	case "report":
		showReport(&b, &v.Cluster.Status)
	case "status":
		showStatus(&b, v.Status)
	case "daemons":
		for i := range v.Daemons {
			b.WriteString(daemonText(&v.Daemons[i]) + "\n")
		}
	case "secrets":
		for _, x := range v.Secrets {
			b.WriteString(x.Name + "\n")
		}
	case "nodes":
		for i := range v.Nodes {
			showNode(&b, &v.Nodes[i])
		}
	case "map":
		s.showMap(&b, v.Daemons)
	case "plan":
		return s.showPlan(named(of))
	default:
		return "", fmt.Errorf("what is %q?", what)
	}
	if b.Len() == 0 {
		return "none\n", nil
	}
	return b.String(), nil
}

func showReport(b *strings.Builder, status *api.StorageClusterStatus) {
	for _, x := range status.Conditions {
		fmt.Fprintf(b, "%s=%s %s %q\n", x.Type, x.Status, x.Reason, x.Message)
	}
	if r := status.Report; r != nil {
		fmt.Fprintf(b, "outcome %s %q\n", r.Outcome, r.Error)
		showDecisions(b, r.Decisions)
	}
}

func showDecisions(b *strings.Builder, decisions []api.Decision) {
	for _, d := range decisions {
		fmt.Fprintf(b, "  %s %s: %s\n", d.Verdict, d.Object, d.Message)
	}
}

func showStatus(b *strings.Builder, status *api.StorageStatus) {
	if status == nil {
		return
	}
	x := status.Status
	stale := ""
	if x.StaleSince != nil {
		stale = " (its last word)"
	}
	fmt.Fprintf(b, "%s %s%s, nodes %v\n", x.Status, cmp.Or(x.Health, "health unknown"), stale, x.StorageNodes)
	if x.Ceph != nil && len(x.Ceph.Quorum) > 0 {
		fmt.Fprintf(b, "quorum %v, mgr %s, OSDs %d, up %d, in %d\n", x.Ceph.Quorum, x.Ceph.ActiveMgr, x.Ceph.OSDs, x.Ceph.OSDsUp, x.Ceph.OSDsIn)
	}
	for _, r := range x.Reasons {
		b.WriteString("  " + r + "\n")
	}
}

func daemonText(d *api.Daemon) string {
	text := fmt.Sprintf("%s on %s: wanted %s, is %s", d.Name, d.Spec.Host, d.Spec.State, cmp.Or(d.Status.State, "unknown"))
	for _, device := range d.Spec.Devices {
		text += ", device " + device.ID
	}
	if d.Status.Message != "" {
		text += ": " + d.Status.Message
	}
	if d.DeletionTimestamp != nil {
		text += " (going, " + string(d.Spec.OnRemoval) + ")"
	}
	return text
}

func showNode(b *strings.Builder, n *api.StorageNode) {
	fmt.Fprintf(b, "%s on %q:", n.Name, n.Status.Host)
	for _, d := range n.Status.Devices {
		fmt.Fprintf(b, " %s=%s", d.Name, d.ID)
	}
	for _, c := range n.Status.Conditions {
		fmt.Fprintf(b, " %s=%s %s %q", c.Type, c.Status, c.Reason, c.Message)
	}
	b.WriteString("\n")
}

func (s *stage) showDevices(host string) (string, error) {
	h := &api.Host{ObjectMeta: metav1.ObjectMeta{Name: host}}
	if err := s.Get(s.ctx, h); err != nil {
		return "", err
	}
	var b strings.Builder
	for _, d := range h.Status.Devices {
		words := append([]string{d.ID + " at " + d.Path + ": " + string(d.Availability)}, d.Reasons...)
		b.WriteString(strings.Join(words, "; ") + "\n")
	}
	return b.String(), nil
}

// showMap prints the OSDs that Ceph itself knows, and which Daemon each is.
func (s *stage) showMap(b *strings.Builder, daemons []api.Daemon) {
	byUUID, fsid := map[string]string{}, ""
	for i := range daemons {
		p := daemons[i].Spec.Parameters
		fsid = p[ceph.ParamFSID]
		byUUID[p[ceph.ParamOSDUUID]] = daemons[i].Name
	}
	osds := s.cephs.cluster(fsid).OSDs()
	for _, id := range slices.Sorted(maps.Keys(osds)) {
		name, ok := byUUID[osds[id]]
		if !ok {
			name = "no Daemon"
		}
		fmt.Fprintf(b, "osd.%d is %s\n", id, name)
	}
	for _, location := range s.cephs.cluster(fsid).Locations() {
		if strings.Count(location, " in ") > 1 {
			fmt.Fprintf(b, "host %s\n", location)
		}
	}
}

// showPlan prints what a new leader would do now.
func (s *stage) showPlan(cluster types.NamespacedName) (string, error) {
	_, p, err := s.plan(cluster)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for _, x := range p.Secrets {
		fmt.Fprintf(&b, "make secret %s\n", x.Name)
	}
	for _, x := range p.Nodes {
		fmt.Fprintf(&b, "write the status of node %s\n", x.Name)
	}
	for _, x := range p.Daemons {
		fmt.Fprintf(&b, "write daemon %s: %s\n", x.Daemon.Name, x.Reason)
	}
	for _, x := range p.Remove {
		fmt.Fprintf(&b, "remove daemon %s: %s\n", x.Name, x.Reason)
	}
	for _, x := range p.Commands {
		fmt.Fprintf(&b, "%s %s: %s\n", x.Verb, x.Object, x.Reason)
	}
	if b.Len() == 0 {
		b.WriteString("nothing to do\n")
	}
	fmt.Fprintf(&b, "refused %t, done %t\n", p.Refused, p.Done)
	showDecisions(&b, slices.DeleteFunc(p.Decisions, func(d api.Decision) bool { return d.Verdict == api.VerdictDo }))
	return b.String(), nil
}
