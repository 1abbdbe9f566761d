package agent

import (
	"crypto/sha256"
	"encoding/hex"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/holdfast-storage/holdfast/agent/service"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/instance"
)

// paths are the agent's directories.
type paths struct {
	// data is <data directory>/agent.
	data string
	run  string
}

// processName names the process of a Daemon; it is unique on the host, as a namespace has no dot in its name.
func processName(key types.NamespacedName) string { return key.Namespace + "." + key.Name }

// keyOf is the reverse of processName.
func keyOf(process string) types.NamespacedName {
	namespace, name, _ := strings.Cut(process, ".")
	return types.NamespacedName{Namespace: namespace, Name: name}
}

func (p paths) daemon(key types.NamespacedName) string {
	return filepath.Join(p.data, "daemons", processName(key))
}

func (p paths) dataOf(key types.NamespacedName) string { return filepath.Join(p.daemon(key), "data") }

func (p paths) logOf(key types.NamespacedName) string { return filepath.Join(p.daemon(key), "log") }
func (p paths) logFile(k types.NamespacedName) string { return filepath.Join(p.logOf(k), "daemon.log") }
func (p paths) retired() string                       { return filepath.Join(p.data, "retired") }

func (p paths) machine() string { return filepath.Join(p.data, instance.NoteFile) }

// actionOf is where the agent keeps what it has to remember of an action that it carries out.
func (p paths) actionOf(uid types.UID) string {
	return filepath.Join(p.data, "actions", string(uid)+".json")
}

func (p paths) retiredAs(key types.NamespacedName, at time.Time) string {
	return filepath.Join(p.retired(), processName(key)+"-"+at.UTC().Format("20060102T150405Z"))
}

// maxRunPath leaves room for the name of a socket: the kernel takes 107 bytes for the whole path (unix(7)).
const maxRunPath = 80

// runOf is the directory for sockets. A name that would make it too long is replaced by a hash of it.
func (p paths) runOf(key types.NamespacedName) string {
	dir := filepath.Join(p.run, processName(key))
	if len(dir) <= maxRunPath {
		return dir
	}
	sum := sha256.Sum256([]byte(processName(key)))
	return filepath.Join(p.run, hex.EncodeToString(sum[:8]))
}

// local is the daemon's place on this host, without its devices.
func (a *agent) local(d *api.Daemon) *service.Local {
	key := types.NamespacedName{Namespace: d.Namespace, Name: d.Name}
	return &service.Local{Daemon: d, Data: a.paths.dataOf(key), Run: a.paths.runOf(key), Log: a.paths.logOf(key)}
}
