package glusterd

import (
	"net/netip"
	"strconv"
	"strings"
)

const (
	// FileFstab is the agent's own list of the file systems that lie on the daemon's devices (fstab(5)).
	FileFstab = "fstab"
	// ParamPool is what tells a pool from all others, also from one that had the same name: the StorageCluster's UID. The file
	// systems on devices are known by it.
	ParamPool = "pool"
	// Port is where glusterd listens for the other nodes and for clients.
	Port = 24007
)

// Command is the command of a Daemon. It mounts the daemon's file systems before each start, so that bricks come back after a
// boot also while no server can be reached; one that cannot be mounted holds up none of the others. The log goes to standard
// error, for the agent to keep and to rotate.
func Command() []string {
	return []string{
		"sh", "-c", `mount -a -T "$0"; exec "$@"`, "${DATA}/" + FileFstab,
		"glusterd", "--no-daemon", "--volfile=${DATA}/" + FileVolfile, "--log-file=-", "--log-level=INFO", "--pid-file=${RUN}/glusterd.pid",
	}
}

// A node that does not answer is given up after givenUp seconds: until then whoever asks the pool for anything waits for it. The packages' file
// says nothing of that, and the system gives up a connection on which something was sent after a quarter of an hour (tcp_retries2). It is the kernel
// of a node that has to answer: one whose glusterd is slow is not given up. That is what ping-timeout would do, and the packages turn it off.
//
// An unused connection is tried each keepalive seconds. The first try that fails once there was silence for givenUp seconds ends it, so there have to be
// several before that, or one lost packet would do.
const (
	givenUp   = "10"
	keepalive = "2"
)

// Volfile is the text of FileVolfile, for a node with this address (measured with 10.3). Directories, sockets and the address are
// the daemon's own, so that several can live on one machine. The other options are those of the packages' file, but for when a node is given up.
func Volfile(address string) string {
	options := []string{
		"working-directory ${DATA}/state",
		"run-directory ${RUN}",
		"glusterd-sockfile ${RUN}/cli.socket",
		"transport-type socket",
		"transport.socket.bind-address " + address,
		"transport.socket.listen-port " + strconv.Itoa(Port),
		"transport.socket.keepalive-time " + keepalive,
		"transport.socket.keepalive-interval " + keepalive,
		"transport.tcp-user-timeout " + givenUp,
		"transport.socket.read-fail-log off",
		"ping-timeout 0",
		"event-threads 1",
		"max-port 60999",
	}
	if ip, err := netip.ParseAddr(address); err == nil && ip.Is6() {
		options = append(options, "transport.address-family inet6")
	}
	return "volume management\n    type mgmt/glusterd\n    option " + strings.Join(options, "\n    option ") + "\nend-volume\n"
}
