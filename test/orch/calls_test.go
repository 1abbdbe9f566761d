package orch_test

// call is a command of 'ceph orch', and what its answer, or its refusal, says.
type call struct {
	command, says, refused string
	// since is the first major release that has the command in this form, and until the last; zero
	// is no bound.
	since, until int
}

func (c call) isOf(major int) bool { return major >= c.since && (c.until == 0 || major <= c.until) }

// calls are made in this order. @ is the directory of the release, where documents are.
var calls = []call{
	{command: "orch status", says: "Available: Yes"},
	{command: "orch host ls", says: "3 hosts in cluster"},
	{command: "orch device ls", says: "disk-3-c"},
	{command: "orch ls", says: "osd.fast"},
	{command: "orch ls rgw -f yaml", says: "rgw_frontend_port: 7480"},
	{command: "orch ps", says: "10.0.0.1:7480"},
	{command: "orch ls --export", says: "service_id: fast"},

	{command: "orch host add h4", says: "Added host 'h4'"},
	{command: "orch host add h9", refused: "has not joined Holdfast"},
	{command: "orch host label add h4 gw", says: "Added label gw to host h4"},
	{command: "orch host label add h4 _no_schedule", refused: "orch host drain h4"},
	{command: "orch host ls --label gw", says: "1 hosts in cluster", since: 18},
	{command: "orch host label rm h4 nosuch", says: "has no label nosuch"},
	{command: "orch host set-addr h4 192.0.2.9", refused: "does not report the address"},
	{command: "orch host set-addr h4 10.0.0.4", says: "Updated host 'h4' addr"},
	{command: "orch host ok-to-stop h3", says: "presumed safe to stop host h3"},
	{command: "orch host ok-to-stop h9", refused: "has not joined Holdfast"},
	{command: "orch host rescan h1", says: "Rescan of host 'h1' started"},
	{command: "orch host maintenance exit h3", refused: "not in maintenance"},

	{command: "orch apply mon --placement=3;h1;h2;h3 --dry-run", says: "|mon "},
	{command: "orch apply mon 3", says: "Scheduled mon update"},
	{command: "orch apply mon 2", refused: "must be odd"},
	{command: "orch apply mon --placement=label:none", refused: "selects no host"},
	{command: "orch apply mgr --placement=2;h1;h2", refused: "was applied by holdfast"},
	{command: "orch daemon add osd h4:/dev/sdb", says: "Scheduled OSD(s) on host 'h4'"},
	{command: "orch daemon add osd h4:/dev/nosuch", refused: "no device /dev/nosuch"},
	{command: "orch daemon add osd h1:/dev/sdb", refused: "is not free"},
	{command: "orch apply -i @slow.yaml --dry-run", says: "disk-3-c"},
	{command: "orch apply -i @slow.yaml", says: "Scheduled osd.slow update"},
	{command: "orch apply -i @all.yaml", says: "Scheduled mds.more update"},
	{command: "orch apply -i @osd.yaml", refused: "tpm2", since: 20},
	{command: "orch apply osd --all-available-devices --dry-run", says: "disk-4-b"},
	{command: "orch set-unmanaged osd.slow", says: "Set unmanaged to True", since: 18},
	{command: "orch set-managed osd.slow", says: "Set unmanaged to False", since: 18},
	{command: "orch set-unmanaged mon", refused: "cannot be set unmanaged", since: 18},

	{command: "orch osd rm 0", says: "Scheduled OSD(s) for removal"},
	{command: "orch osd rm status", says: "h1"},
	{command: "orch osd rm stop 0", says: "Stopped OSD(s) removal"},
	{command: "orch osd rm 99", refused: "there is no daemon osd.99"},
	{command: "orch osd rm 0 1 2 3 4 5 --force", refused: "osd."},
	{command: "orch device zap h4 /dev/sdd", refused: "--force"},
	{command: "orch device zap h1 /dev/sdb --force", refused: "is in use by daemon"},
	{command: "orch device replace h2 /dev/sdc --yes-i-really-mean-it", says: "Scheduled OSD(s)", since: 20},
	{command: "device light on X", says: "Ceph knows no such device"},

	{command: "orch apply mds home --placement=3", says: "Scheduled mds.home update"},
	{command: "orch daemon add mds home h2", says: "Scheduled mds.home update"},
	{command: "orch apply rgw s3 --port=8000 --placement=2;h1;h2", refused: "was applied by holdfast"},
	{command: "orch apply rgw s4 --realm=r --zone=z", refused: "no multisite"},
	{command: "orch apply rbd-mirror --placement=1", says: "Scheduled rbd-mirror update"},
	{command: "orch apply prometheus", refused: "not supported by Holdfast"},

	{command: "orch daemon restart mgr.b", says: "Scheduled to restart mgr.b on host 'h2'"},
	{command: "orch daemon stop mds.home-b", says: "Scheduled to stop mds.home-b"},
	{command: "orch daemon start mds.home-b", says: "Scheduled to start mds.home-b"},
	{command: "orch daemon stop osd.nosuch", refused: "there is no daemon osd.nosuch"},
	{command: "orch daemon redeploy mgr.b --image x/y", refused: "cannot get an image"},
	{command: "orch daemon reconfig mgr.b", says: "Scheduled to reconfig mgr.b"},
	{command: "orch daemon rotate-key mgr.b", refused: "does not support 'rotate-key'", since: 18, until: 18},
	{command: "orch restart rgw.s3", says: "Scheduled to restart rgw.s3"},
	{command: "orch reconfig mon", says: "Scheduled to reconfig mon"},
	{command: "orch restart nosuch", refused: "there is no service nosuch"},
	{command: "orch daemon rm mds.home-a", says: "Removing mds.home-a from host 'h1'"},
	{command: "orch daemon rm osd.1 --force", refused: "ceph orch osd rm 1"},

	{command: "orch rm mds.more", says: "Removed service mds.more"},
	{command: "orch rm mon", refused: "cannot be removed"},
	{command: "orch rm nosuch", says: "Invalid service 'nosuch'"},
	{command: "orch rm osd.fast", refused: "use --force"},
	{command: "orch rm osd.fast --force", says: "takes no more disks"},

	{command: "orch host maintenance enter h3", says: "are being stopped for maintenance"},
	{command: "orch host drain h4", says: "Scheduled to remove all daemons"},
	{command: "orch host drain stop h4", says: "Stopped draining host 'h4'", since: 20},
	{command: "orch host rm h4", refused: "ceph orch host drain h4"},
	{command: "orch pause"},
	{command: "orch status", says: "Paused: Yes"},
	{command: "orch resume"},
	{command: "orch cancel"},
	{command: "orch status", says: "Paused: No"},

	{command: "orch upgrade status", refused: "This Orchestrator does not support"},
	{command: "orch tuned-profile ls", refused: "This Orchestrator does not support", since: 18},
	{command: "orch certmgr cert ls", since: 20},
	{command: "orch get-security-config", says: `"security_enabled": false`, since: 20},
}

// documents are those that the calls name.
var documents = map[string]string{
	"slow.yaml": `
service_type: osd
service_id: slow
placement: {host_pattern: "*"}
spec: {data_devices: {rotational: 1}}
`,
	"all.yaml": `
service_type: host
hostname: h4
addr: h4
labels: [more]
---
service_type: mds
service_id: more
placement: {count: 2, hosts: [h1, h2]}
`,
	"osd.yaml": `
service_type: osd
service_id: odd
placement: {hosts: [h1]}
spec: {data_devices: {rotational: 1}, encrypted: true, tpm2: true}
`,
}
