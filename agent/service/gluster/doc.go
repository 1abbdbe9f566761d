// Package gluster holds the host's side of GlusterFS: one glusterd for each StorageNode, the file systems that its bricks lie
// on, the brick processes that it leaves behind, what it says of its pool, and the commands that its driver gives.
//
// A Daemon of type glusterd looks like this (measured with 10.3; several of them live on one machine, each with an address of
// its own):
//
//	id:         the name of the StorageNode
//	command:    sh -c 'mount -a -T "$0"; exec "$@"' ${DATA}/fstab glusterd --no-daemon --volfile=${DATA}/glusterd.vol
//	            --log-file=- --log-level=INFO --pid-file=${RUN}/glusterd.pid
//	files:      glusterd.vol, with these options of mgmt/glusterd beside those of Debian's file:
//	              working-directory ${DATA}/state
//	              run-directory ${RUN}
//	              glusterd-sockfile ${RUN}/cli.socket
//	              transport.socket.bind-address <address of the node>
//	              transport.address-family inet6, where the address is one of IPv6
//	devices:    any names that are good in a path; they become part of the bricks' paths and may not change
//	parameters: pool         what tells this pool from all others, also from one of the same name: the cluster's UID
//	            directories  the StorageNode's directories, separated by newlines
//	            report       "peer" or "pool" (api.ParameterReport)
//
// Each device carries an XFS file system whose UUID is made of the pool and the device's identity; it is mounted by the
// command itself at each start, so that bricks come back after a boot also while no server can be reached. Where bricks may be
// made is told in the report, with size and free space, as a directory that exists only while the device is mounted: glusterd
// makes the brick's own directory in it, and refuses where it is not.
package gluster
