// Package gluster holds the host's side of GlusterFS: one glusterd for each StorageNode, the file systems that its bricks lie
// on, the brick processes that it leaves behind, what it says of its pool, and the commands that its driver gives.
//
// How a Daemon of type glusterd looks stands in internal/glusterd (Command, Volfile and the parameters).
//
// Each device carries an XFS file system whose UUID is made of the pool and the device's identity; it is mounted by the
// command itself at each start, so that bricks come back after a boot also while no server can be reached. Where bricks may be
// made is told in the report (glusterd.Store.Path): a directory that exists only while the device is mounted. glusterd makes a
// brick's own directory in it, and refuses where it is not there.
package gluster
