package lastwords

import (
	"regexp"
	"strings"

	"github.com/holdfast-storage/holdfast/agent/runtime"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// packages have the programs of daemons, where the package has another name.
var packages = map[string]string{
	"radosgw": "radosgw", "ganesha.nfsd": "nfs-ganesha", "glusterd": "glusterfs-server",
}

// program is the one that Go's os/exec, or the system call, could not start.
var program = regexp.MustCompile(`exec:? "?(?:\S*/)?([\w.+-]+)"?: `)

// startRules know why a program is not started, by the words of os/exec and of strerror.
var startRules = []rule{
	{
		line:   regexp.MustCompile(`executable file not found|no such file or directory`),
		reason: api.ReasonProgramBroken, say: "its program {program} is not installed, or may not be executed",
		next: "run 'apt-get install --reinstall {package}' on host {host}" + retries,
	},
	{
		line:   regexp.MustCompile(`permission denied|operation not permitted`),
		reason: api.ReasonProgramBroken, say: "its program {program} may not be executed",
		next: "run 'apt-get install --reinstall {package}' on host {host}, and mount its file system without noexec" +
			retries,
	},
	{
		line:   regexp.MustCompile(`exec format error`),
		reason: api.ReasonProgramBroken, say: "its program {program} is damaged, or made for another processor",
		next: "run 'apt-get install --reinstall {package}' on host {host}" + retries,
	},
	{
		line:   regexp.MustCompile(`no space left on device|disk quota exceeded`),
		reason: api.ReasonDiskFull, say: "the file system of the agent is full",
		next: "free space on host {host}: 'df -h' shows which one is full" + retries,
	},
	{
		line:   regexp.MustCompile(`read-only file system`),
		reason: api.ReasonReadOnly, say: "the file system of the agent is read-only",
		next: "look for its cause in 'dmesg' on host {host}, repair the file system, and mount it again" + retries,
	},
}

// ofStart is why a process could not be started; what it would have written is not there.
func ofStart(d *api.Daemon, why string) Cause {
	for _, r := range startRules {
		if found := r.line.FindStringSubmatchIndex(why); found != nil {
			c, names := r.cause(d, why, found, nil), namesIn(why, d)
			c.Message, c.Next = names.Replace(c.Message), names.Replace(c.Next)
			return c
		}
	}
	if why == runtime.NotStarted { // of a pod Kubernetes alone knows more
		return Cause{Next: "see its events with 'kubectl -n " + d.Namespace + " describe pod " + d.Name + "'" + retries}
	}
	return Cause{Next: fill("see what the agent says: 'journalctl -u holdfast' on host {host}"+retries, d)}
}

func namesIn(why string, d *api.Daemon) *strings.Replacer {
	name := d.Spec.Type
	if found := program.FindStringSubmatch(why); found != nil {
		name = found[1]
	}
	pkg, other := packages[name]
	if !other {
		pkg = name
	}
	return strings.NewReplacer("{program}", name, "{package}", pkg)
}
