package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/test/home"
)

// TestOrchWrites runs a session of 'ceph orch' on a real cluster of four hosts, of which one has
// yet to be added: each command with what it has to answer.
func TestOrchWrites(t *testing.T) {
	begin(t)
	b := newStorageBed(t, 4, 2)
	b.mustApply(orchManifest(b))
	b.awaitOrch()
	s := &session{b}
	for _, part := range []struct {
		name string
		do   func()
	}{
		{"hosts", s.hosts},
		{"osds", s.osds},
		{"mons and mgrs", s.monsAndMgrs},
		{"file systems", s.filesystems},
		{"gateways", s.gateways},
		{"daemons", s.daemonsAndServices},
		{"maintenance", s.maintenance},
		{"drive groups", s.driveGroups},
		{"drain", s.drained},
	} {
		if !t.Run(part.name, func(t *testing.T) { b.T = t; part.do() }) {
			break
		}
	}
	b.T = t
	b.noOrphans()
}

// orchManifest declares a cluster without the numbers that 'ceph orch' is to set, on all hosts but
// the last.
func orchManifest(b *bed) string {
	wanted := home.SpecFor(b.Lab, 3, 2, 2)
	wanted.Interval = "2s"
	delete(wanted.Devices, "h4")
	return withOrch(wanted)
}

// withOrch is a cluster without the numbers that 'ceph orch' is to set.
func withOrch(wanted home.Spec) string {
	text := wanted.YAML()
	return strings.Replace(text, "    mon: {count: 3}\n    mgr: {count: 2}\n", "    orch: {state: Enabled}\n", 1)
}

// session is a user of 'ceph orch'.
type session struct{ *bed }

// says runs 'ceph ARGS', which has to succeed and to say all of the texts.
func (s *session) says(args string, texts ...string) string {
	s.Helper()
	out, err := s.try(args)
	if err != nil {
		s.Errorf("ceph %s: %v", args, err)
		return out
	}
	s.has(args, out, texts)
	return out
}

// refuses runs 'ceph ARGS', which has to fail and to say all of the texts.
func (s *session) refuses(args string, texts ...string) {
	s.Helper()
	out, err := s.try(args)
	if err == nil {
		s.Errorf("ceph %s was not refused:\n%s", args, out)
	}
	if strings.Contains(out, "Traceback") {
		s.Errorf("ceph %s ends with a traceback", args)
	}
	s.has(args, out, texts)
}

// ends runs 'ceph ARGS', and waits until what it began is done.
func (s *session) ends(args string, texts ...string) {
	s.Helper()
	s.run("action", "wait", actionIn(s.says(args, texts...)))
}

// actionIn is the name of the Action in an answer.
func actionIn(out string) string {
	_, rest, _ := strings.Cut(out, "action/")
	name, _, _ := strings.Cut(rest, " ")
	return name
}

// refusesInTheEnd runs 'ceph ARGS', which is refused: at once, or, where Ceph needs longer to say so than an
// answer may take, by its Action.
func (s *session) refusesInTheEnd(args string) {
	s.Helper()
	out, err := s.try(args)
	if err != nil {
		return
	}
	name := actionIn(out)
	s.await("action "+name+" to be refused", func() error {
		a, err := read[api.Action](s.bed, 1, "actions", name)
		if err == nil && a.Status.State != api.ActionFailed {
			err = fmt.Errorf("it is %s: %s", a.Status.State, a.Status.Message)
		}
		return err
	})
}

func (s *session) has(args, out string, texts []string) {
	s.Helper()
	for _, text := range texts {
		if !strings.Contains(out, text) {
			s.Errorf("ceph %s does not say %q:\n%s", args, text, out)
		}
	}
}

func (s *session) try(args string) (string, error) {
	out, err := s.Holdfast(append([]string{"ceph", "shell", "--", "ceph"}, strings.Fields(args)...)...)
	if err != nil {
		return err.Error(), err
	}
	return out, nil
}

// file is the path of a file with documents, on the host where commands run.
func (s *session) file(name, text string) string {
	const dir = "var/lib/holdfast"
	if err := os.WriteFile(filepath.Join(s.Lab.Host(1).Path(dir), name), []byte(text), 0o600); err != nil {
		s.Fatal(err)
	}
	return filepath.Join("/"+dir, name)
}

// becomes waits until a command says a text.
func (s *session) becomes(args, text string) {
	s.Helper()
	s.await("'ceph "+args+"' to say "+text, func() error {
		if out, err := s.try(args); err != nil || !strings.Contains(out, text) {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	})
}

func (s *session) hosts() {
	s.says("orch host add h4", "Added host 'h4'")
	s.says("orch host ls", "h4")
	s.refuses("orch host add h9 192.0.2.9", "h9", "holdfast token create")
	s.says("orch host label add h4 gw", "Added label gw to host h4")
	s.says("orch host ls -f json", `"gw"`)
	s.says("orch host label rm h4 gw", "Removed label gw from host h4")
	s.says("orch host label rm h4 gw", "no label gw")
	s.refuses("orch host set-addr h4 192.0.2.9", "does not report the address")
	s.says("orch host ok-to-stop h4", "presumed safe to stop host h4")
	s.refuses("orch host ok-to-stop nosuch", "nosuch")
	s.anothersHost()
}

// anothersHost has a second cluster declare host h4: 'ceph orch' of this one changes nothing there
// until that is gone.
func (s *session) anothersHost() {
	const other = "apiVersion: holdfast.io/v1alpha1\nkind: StorageCluster\nmetadata: {name: other}\n" +
		"spec: {type: glusterfs}\n---\napiVersion: holdfast.io/v1alpha1\nkind: StorageNode\n" +
		"metadata: {name: other-h4}\nspec:\n  type: glusterfs\n  cluster: other\n" +
		"  nodeSelector: {kubernetes.io/hostname: h4}\n"
	if out, code := s.apply(1, other); code != 0 {
		s.Fatalf("holdfast apply ended with %d: %s", code, out)
	}
	s.refuses("orch host drain h4", "other", "h4")
	s.refuses("orch host label add h4 gw", "other", "h4")
	s.run("delete", "storagenode", "other-h4")
	s.run("delete", "storagecluster", "other")
	s.becomes("orch host label add h4 late", "Added label late to host h4")
	s.says("orch host label rm h4 late", "Removed label late")
}

func (s *session) monsAndMgrs() {
	s.says("orch apply mon --placement=3 --dry-run", "SERVICESPEC")
	s.says("orch apply mon 3", "Scheduled mon update")
	s.refuses("orch apply mon 2", "odd")
	s.refuses("orch apply mon --placement=label:none", "selects no host")
	s.refuses("orch apply mon --placement=nosuch", "nosuch")
	s.says("orch apply mgr --placement=3 --dry-run", "SERVICESPEC", "mgr")
	s.says("orch ls mgr", "2/2")
	s.says("orch apply mgr 3", "Scheduled mgr update", "action/orch-")
	s.becomes("orch ls mgr", "3/3")
	s.says("orch ls mgr --export", "count: 3")
	s.says("orch apply mgr 2", "Scheduled mgr update")
	s.becomes("orch ls mgr", "2/2")
	s.refuses("orch rm mon", "mon")
	s.says("orch rm nosuch", "Invalid service 'nosuch'")
	unknown := "service_type: mds\nservice_id: home\nplacement: {count: 2}\nspec: {bogus: 1}\n"
	s.refuses("orch apply -i "+s.file("unknown.yaml", unknown), "bogus")
	export := s.says("orch ls --export", "service_type: mon")
	before := s.cluster()
	s.says("orch apply -i " + s.file("export.yaml", export))
	if after := s.cluster(); after.Generation != before.Generation {
		s.Errorf("what was exported changes the cluster when it is applied again:\n%s", export)
	}
	s.says("orch pause")
	s.says("orch status", "Paused: Yes")
	s.says("orch resume")
	s.says("orch status", "Paused: No")
	s.says("orch cancel")
}

// cluster is the StorageCluster as it is.
func (s *session) cluster() api.StorageCluster {
	s.Helper()
	c, err := read[api.StorageCluster](s.bed, 1, "storageclusters", "ceph")
	if err != nil {
		s.Fatal(err)
	}
	return c
}

func (s *session) filesystems() {
	s.says("fs volume create home")
	s.becomes("orch ls mds", "mds.home")
	s.becomes("fs status home", "active")
	s.says("fs volume info home", "pools")
	s.mounted()
	s.says("orch apply mds home --placement=3", "Scheduled mds.home update")
	s.becomes("orch ls mds", "3/3")
	s.says("fs volume rm home --yes-i-really-mean-it")
	s.await("the file system to be gone", func() error {
		if out, err := s.try("orch ls mds"); err != nil || strings.Contains(out, "mds.home") {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	})
	if out := s.says("fs ls"); strings.Contains(out, "home") {
		s.Errorf("the file system came back: %s", out)
	}
}

// mounted has a client write to the file system, and read that back.
func (s *session) mounted() {
	s.mustApply(strings.TrimPrefix(desktopYAML, "---\n"))
	c := s.mountFilesystem(1)
	c.end(s.T)
	s.run("delete", "client", "desktop")
}

// s3 has a user of the gateways put an object, and list it.
func (s *session) s3() {
	s.mustApply(strings.TrimPrefix(userYAML("app"), "---\n"))
	file := s.newClient(1, "s3").dir() + "/s3.cfg"
	access, secret := s.s3Keys("app")
	for _, args := range [][]string{{"mb", "s3://box"}, {"put", file, "s3://box/it"}, {"ls", "s3://box"}} {
		if out, ok := s.s3cmd(access, secret, args...); !ok || args[0] == "ls" && !strings.Contains(out, "s3://box/it") {
			s.Errorf("s3cmd %v: %s", args, out)
		}
	}
	s.run("delete", "objectstoreuser", "app")
}

func (s *session) gateways() {
	s.says("orch apply rgw s3 --port=8000 --placement=2", "Scheduled rgw.s3 update")
	s.becomes("orch ls rgw", "2/2")
	s.s3()
	s.refuses("orch apply rgw s4 --realm=r --zone=z", "realm")
	s.says("orch ls rgw -f yaml", "service_id: s3")
	s.says("orch rm rgw.s3", "Removed service rgw.s3")
	s.await("the gateways to be gone", func() error {
		if out, err := s.try("orch ps --daemon-type rgw"); err != nil || strings.Contains(out, "rgw.s3") {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	})
	s.refuses("orch apply grafana", "not supported by Holdfast: grafana")
}

func (s *session) maintenance() {
	s.await("all placement groups to be clean", s.allPGs(func(pgStat) bool { return true }))
	s.becomes("orch host ok-to-stop h3", "presumed safe")
	// Ceph refuses for as long as a placement group moves, such as after its mgrs were started again.
	s.await("host h3 to enter maintenance", func() error {
		out, err := s.try("orch host maintenance enter h3")
		if err != nil {
			return err
		}
		_, err = s.Holdfast("action", "wait", actionIn(out))
		return err
	})
	s.says("orch host ls", "Maintenance")
	s.refuses("orch host maintenance enter h2", "h2")
	s.says("orch host maintenance exit h3", "h3")
	s.await("the host to be back", func() error {
		if out, err := s.try("orch host ls"); err != nil || strings.Contains(out, "Maintenance") {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	})
}

// drained empties the last host, and takes it out of the cluster.
func (s *session) drained() {
	s.becomes("orch host drain h4", "Scheduled to remove") // h3 has to serve again
	s.becomes("orch host ls", "_no_schedule")
	s.await("the host to be empty", func() error {
		if id := s.osdOn("h4"); id != "" {
			return fmt.Errorf("osd.%s is there", id)
		}
		return nil
	})
	s.says("orch host rm h4", "Removed")
	s.run("ceph", "shell", "--", "ceph", "orch", "set", "backend", "")
	s.becomes("orch status", "Backend: holdfast")
}

// path is where the last host has a disk.
func (s *session) path(disk int) string {
	s.Helper()
	h, err := read[api.Host](s.bed, 1, "hosts", "h4")
	if err != nil {
		s.Fatal(err)
	}
	for _, d := range h.Status.Devices {
		if d.ID == s.Lab.Host(4).Disk(disk).ID() {
			return d.Path
		}
	}
	s.Fatalf("host h4 has no disk %d: %+v", disk, h.Status.Devices)
	return ""
}

// osdOn is the number of the OSD on the last host; empty where there is none.
func (s *session) osdOn(host string) string {
	for _, d := range s.daemons() {
		if d.Spec.Type == "ceph-osd" && d.Spec.Host == host {
			return d.Spec.ID
		}
	}
	return ""
}

func (s *session) osds() {
	disk := s.path(0)
	s.says("orch device ls h4", disk)
	s.refuses("orch daemon add osd h4:/dev/nosuch", "no device")
	s.says("orch daemon add osd h4:"+disk, "Scheduled OSD(s) on host 'h4'")
	s.becomes("orch ps h4 --daemon-type osd", "running")
	id := s.osdOn("h4")
	s.refuses("orch daemon add osd h4:"+disk, "not free")
	s.becomes("osd stat", "7 up")

	s.fillPool()
	s.says("orch osd rm status", "No OSD remove/replace operations reported")
	s.refuses("orch osd rm 77", "osd.77")
	s.refuses("orch osd rm 0 1 2 3 4 5 "+id, "osd")
	// Its data does not move, so the OSD cannot leave before it is called back.
	s.holdData("set")
	s.says("orch osd rm "+id, "Scheduled OSD(s) for removal")
	s.says("orch osd rm status", "h4")
	s.says("orch osd rm stop "+id, "Stopped OSD(s) removal")
	s.holdData("unset")
	s.says("orch osd rm status", "No OSD remove/replace operations reported")
	s.says("orch osd rm "+id+" --zap", "Scheduled OSD(s) for removal", "action/orch-")
	s.await("the OSD to be gone", func() error {
		if id := s.osdOn("h4"); id != "" {
			return fmt.Errorf("osd.%s is there", id)
		}
		return nil
	})
	s.refuses("orch device zap h4 "+disk, "--force")
	s.refuses("orch device zap h1 "+s.pathOf("h1")+" --force", "osd")
	s.says("device light on nosuch", "Ceph knows no such device") // Ceph itself hides an error
	s.says("orch host rescan h1", "h1")
	s.says("osd pool rm data data --yes-i-really-really-mean-it")
}

// pathOf is where a host has the disk of an OSD.
func (s *session) pathOf(host string) string {
	s.Helper()
	h, err := read[api.Host](s.bed, 1, "hosts", host)
	if err != nil {
		s.Fatal(err)
	}
	for _, d := range h.Status.Devices {
		if d.Taken() != "" && d.Kind != api.DevicePartition {
			return d.Path
		}
	}
	s.Fatalf("no disk of host %s is taken", host)
	return ""
}

func (s *session) daemonsAndServices() {
	s.ends("orch daemon restart mgr.a", "Scheduled to restart mgr.a")
	s.awaitOrch()
	// Ceph refuses until the OSDs have reported their placement groups to the restarted mgr.
	s.await("all placement groups to be clean", s.allPGs(func(pgStat) bool { return true }))
	s.says("orch daemon stop osd.0", "Scheduled to stop osd.0")
	s.becomes("orch ps --daemon-type osd --daemon-id 0", "stopped")
	s.refusesInTheEnd("orch daemon stop osd." + s.osdOn("h2"))
	s.says("orch daemon start osd.0", "Scheduled to start osd.0")
	s.becomes("orch ps --daemon-type osd --daemon-id 0", "running")
	s.ends("orch restart osd", "Scheduled to restart osd")
	s.becomes("osd stat", "6 up")
	s.ends("orch redeploy mgr", "Scheduled to redeploy mgr")
	s.awaitOrch()
	s.says("orch reconfig mon", "nothing to do")
	s.refuses("orch daemon rm osd.0 --force", "orch osd rm")
	s.refuses("orch daemon restart osd.99", "osd.99")
	s.refuses("orch restart nosuch", "nosuch")
}

func (s *session) driveGroups() {
	const group = "service_type: osd\nservice_id: h4_all\nplacement: {hosts: [h4]}\n" +
		"spec:\n  data_devices: {all: true}\n"
	file := s.file("group.yaml", group)
	s.becomes("orch apply -i "+file+" --dry-run", "h4_all") // a mgr that has just started says nothing of OSDs
	s.says("orch apply -i "+file+" --dry-run", "OSDSPEC", "h4_all", "h4")
	if out := s.says("orch ls osd"); strings.Contains(out, "h4_all") {
		s.Errorf("a dry run declares a drive group:\n%s", out)
	}
	s.says("orch apply -i "+file, "Scheduled osd.h4_all update")
	s.becomes("orch ls osd", "osd.h4_all")
	s.becomes("osd stat", "8 up")
	s.refuses("orch rm osd.h4_all", "osd.h4_all")
	s.says("orch rm osd.h4_all --force", "its OSDs stay")
}
