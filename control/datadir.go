package control

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast-storage/holdfast/control/doors"
	"github.com/holdfast-storage/holdfast/control/endpoints"
	"github.com/holdfast-storage/holdfast/internal/atomicfile"
)

// Format is the format of data directories that this version of Holdfast writes. It grows when an older version could not
// read what a newer one wrote.
const Format = 1

// dataDir is the directory that holds everything of a server or an agent:
//
//	VERSION           the format of the directory
//	lock              held by the running server or agent; holds its process id
//	server.json       what the server is; written last, so that a directory without it belongs to no complete server
//	admin.kubeconfig  full rights
//	pki/              the authority, the server's certificates, the key that Secrets are encrypted with
//	etcd/             the database
//	etcd.removed/     databases that count no more, one for each generation; see setAside
//	snapshots/        scheduled backups
//	before-restore-*/ what a restore replaced
//	restore.tmp/      what a restore prepares
//	host/             the identity of the host's agent, and the servers that it knows
type dataDir string

func (d dataDir) file(name string) string { return filepath.Join(string(d), name) }
func (d dataDir) pki() string             { return d.file("pki") }
func (d dataDir) etcd() string            { return d.file("etcd") }
func (d dataDir) host() string            { return HostDir(string(d)) }
func (d dataDir) adminKubeconfig() string { return d.file("admin.kubeconfig") }

// HostDir is where the identity of a host's agent lies below a data directory.
func HostDir(dataDir string) string { return filepath.Join(dataDir, "host") }

// AdminKubeconfig is where the kubeconfig of the administrator lies below a server's data directory.
func AdminKubeconfig(dataDir string) string { return filepath.Join(dataDir, "admin.kubeconfig") }

// Lock makes the data directory if it is missing, takes its lock and checks its format. The returned function lets the lock
// go; so does the end of the process, however it comes. Nothing else in a directory of a newer format is touched.
func Lock(dir string) (unlock func(), err error) {
	d := dataDir(dir)
	if err := atomicfile.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("while making the data directory: %w", err)
	}
	if err := d.checkFormat(); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(d.file("lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("while locking the data directory: %w", err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return nil, errors.Join(d.locked(f, err), f.Close())
	}
	if err := errors.Join(f.Truncate(0), writePID(f), d.writeFormat()); err != nil {
		return nil, errors.Join(fmt.Errorf("while locking the data directory: %w", err), f.Close())
	}
	return func() { f.Close() }, nil
}

func writePID(f *os.File) error {
	_, err := f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	return err
}

func (d dataDir) locked(f *os.File, err error) error {
	if !errors.Is(err, unix.EWOULDBLOCK) {
		return fmt.Errorf("while locking the data directory: %w", err)
	}
	text := make([]byte, 32)
	n, _ := f.ReadAt(text, 0)
	return fmt.Errorf("another holdfast (pid %s) runs on the data directory %s: stop it first, or choose another directory with --data-dir",
		strings.TrimSpace(string(text[:n])), string(d))
}

func (d dataDir) checkFormat() error {
	text, err := os.ReadFile(d.file("VERSION"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("while reading the format of the data directory: %w", err)
	}
	format, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return fmt.Errorf("%s should hold a number, but holds %q: write %d into it", d.file("VERSION"), text, Format)
	}
	if format > Format {
		return fmt.Errorf("the data directory %s was made by a newer holdfast (format %d, this one knows %d): install that version, "+
			"or choose another directory with --data-dir; nothing was changed", string(d), format, Format)
	}
	return nil
}

func (d dataDir) writeFormat() error {
	if _, err := os.Stat(d.file("VERSION")); err == nil {
		return nil
	}
	return atomicfile.Write(d.file("VERSION"), []byte(strconv.Itoa(Format)+"\n"), 0o600)
}

// lostDatabase says whether a server that ran before has no database any more. An empty member in its place would elect itself
// and tell all hosts that nothing is wanted of them, or break the promises that the old one gave to the other members.
func (d dataDir) lostDatabase() bool {
	_, ran := os.Stat(d.adminKubeconfig())
	_, err := os.Stat(filepath.Join(d.etcd(), "member"))
	return ran == nil && errors.Is(err, fs.ErrNotExist)
}

// isAgent says whether the directory belongs to a host that is no server. One that joins as a server gets what all servers share before
// it has an identity as a host, and may be cut off after that.
func (d dataDir) isAgent(stored *settings) bool {
	return stored == nil && endpoints.Exists(d.host()) && missing(d.encryptionKey())
}

// clearLeft removes what was left behind where something was cut off, and is of no use any more.
func (d dataDir) clearLeft() error {
	if err := errors.Join(atomicfile.RemoveAll(d.restoreWork()), atomicfile.RemoveAll(d.discarded())); err != nil {
		return fmt.Errorf("while removing what was left behind: %w", err)
	}
	return nil
}

// knowsOthers says whether a server knows where others are, so that it can ask them for the data that it lost.
func (d dataDir) knowsOthers(s *settings) bool {
	host, err := endpoints.Open(d.host())
	return err == nil && slices.ContainsFunc(host.Addresses(), func(a string) bool { return a != s.endpoint() })
}

// oneFileSystem refuses a database on a file system of its own: data that counts no more is moved aside, which there cannot be done,
// as little as a restore. It is better known at the first start than on the day on which it is needed.
func (d dataDir) oneFileSystem() error {
	all, there := deviceOf(string(d))
	if etcd, ran := deviceOf(d.etcd()); !there || !ran || all == etcd {
		return nil
	}
	return fmt.Errorf("%s lies on another disk or file system than %s: put the whole data directory on one, by mounting it at %s "+
		"or with --data-dir", d.etcd(), string(d), string(d))
}

// deviceOf is the file system that a file or directory lies on, where there is one.
func deviceOf(path string) (device uint64, ok bool) {
	var stat unix.Stat_t
	err := unix.Stat(path, &stat)
	return stat.Dev, err == nil
}

// settings is what a server is, and stays: server.json.
type settings struct {
	Name    string `json:"name"`
	Address string `json:"address"`
	// Was is the address that the members of etcd know the server by, after it was started with another one and until
	// they know that.
	Was            string `json:"was,omitempty"`
	APIPort        int    `json:"apiPort"`
	EtcdPeerPort   int    `json:"etcdPeerPort"`
	EtcdClientPort int    `json:"etcdClientPort"`
	// Existing is the etcd cluster that the server joined, as etcd wants it; empty for the first server.
	Existing string `json:"existing,omitempty"`
	// Seat says whether the server holds a member of etcd.
	Seat seatState `json:"seat,omitempty"`
	// Restoring is set while a restore exchanges the data: where the old data is moved to.
	Restoring string `json:"restoring,omitempty"`
	// New is what there was nothing of before that restore: names below the data directory.
	New []string `json:"new,omitempty"`
	// Generation is when the data was restored, in seconds since 1970; 0 when it never was. Of two servers of one control plane
	// that disagree, the one with the higher generation is right.
	Generation int64 `json:"generation,omitempty"`
	// Restored says on which server that was, and from what; empty where another server did it.
	Restored string `json:"restored,omitempty"`
	// Unpresented is set after a restore until the server has told that it is the only one.
	Unpresented bool `json:"unpresented,omitempty"`
	// Rejoining is set from when a server that was removed begins to join again until it has.
	Rejoining bool `json:"rejoining,omitempty"`

	// lifetime is that of certificates, refresh how often the host asks, askRemoved how long the others are asked; see Config.
	lifetime, refresh, askRemoved time.Duration
	// bounds are those of the API's connections.
	bounds doors.Bounds
}

// settingsFile is where settings lie below the data directory.
const settingsFile = "server.json"

// load returns nil when the directory belongs to no complete server.
func (d dataDir) load() (*settings, error) {
	text, err := os.ReadFile(d.file(settingsFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	s := &settings{}
	if err := json.Unmarshal(text, s); err != nil {
		return nil, fmt.Errorf("while reading %s: %w; %s", d.file(settingsFile), err, cureOwn)
	}
	return s, nil
}

func (d dataDir) save(s *settings) error {
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	return atomicfile.Write(d.file(settingsFile), append(text, '\n'), 0o600)
}
