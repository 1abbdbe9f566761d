package ceph

import (
	"strings"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/ceph/cephx"
	"github.com/holdfast-storage/holdfast/driver/ceph/monset"
)

// The types of daemons, as in Daemon.spec.type.
const (
	TypeMon = monset.Type
	TypeMgr = "ceph-mgr"
	TypeOSD = "ceph-osd"
	TypeMDS = "ceph-mds"
)

// The files, devices and parameters of a Daemon that its service agent knows by name.
const (
	// FileConf is ceph.conf.
	FileConf = "ceph.conf"
	// FileKeyring holds the daemon's own key; for a mon it is the keyring that its store is made from.
	FileKeyring = "keyring"
	// DeviceBlock is an OSD's main device.
	DeviceBlock = "block"
	// DeviceDB and DeviceWAL are where an OSD keeps its database and its log, if not on the main device.
	DeviceDB  = "block.db"
	DeviceWAL = "block.wal"
	// ParamFSID is the cluster's fsid, for all types.
	ParamFSID = "fsid"
	// ParamAddress is the address that the daemon listens on, for all types.
	ParamAddress = monset.ParamAddress
	// ParamMonmap and ParamMonHosts list the mons of the cluster, and their hosts: see monset.
	ParamMonmap   = monset.ParamMonmap
	ParamMonHosts = monset.ParamMonHosts
	// ParamMonFounded is set when the mons were seen in a quorum. No mon makes a store after that with which it could found a
	// cluster of its own.
	ParamMonFounded = "founded"
	// ParamMonRejoin lets a mon that lost its store make one anew, with which it joins the others: they are a quorum.
	ParamMonRejoin = "rejoin"
	// ParamDrain is memory.Replace for an OSD that failed and whose number another one gets. How far others
	// are on their way out is the leader's memory.
	ParamDrain = "drain"
	// ParamCrushHost is the bucket of CRUSH that an OSD is in, or puts itself into when it starts; ParamCrushPlaced is set when CRUSH was seen to have
	// it, which then stays where it is whenever it starts.
	ParamCrushHost   = "crushHost"
	ParamCrushPlaced = "crushPlaced"
	// ParamConfig is what of spec.ceph.config a daemon was started with in its ceph.conf, in the form of that.
	ParamConfig = "config"
	// ParamOSDUUID is the OSD's own identity.
	ParamOSDUUID = "osdUUID"
	// ParamForeignStore is where the store of a mon lies that Holdfast did not make; its agent links it into its own place at the hand-over.
	ParamForeignStore = "foreignStore"
	// ParamDeviceClass is the CRUSH device class that the OSD is made with; without it Ceph finds one.
	ParamDeviceClass = "deviceClass"
)

// The annotations on a cluster's Secrets.
const (
	// AnnotationFSID is the fsid of the Ceph cluster that the key is for.
	AnnotationFSID = "holdfast.io/fsid"
	// AnnotationClusterUID is the UID of the StorageCluster that the key was made for.
	AnnotationClusterUID = "holdfast.io/cluster-uid"
	// AnnotationEntity is the cephx entity, such as osd.3.
	AnnotationEntity = api.AnnotationEntity
)

// The entries of a Secret that holds a key.
const (
	secretKey     = "key"
	secretKeyring = "keyring"
)

const (
	entityMon   = cephx.Mon
	entityAdmin = cephx.Admin
	nfsPrefix   = cephx.NFSPrefix
)

// secretName names the Secret of a cephx entity. "mon." loses its dot, which a name may not end with.
func secretName(cluster, entity string) string {
	if entity == entityMon {
		entity = "mon"
	}
	return cluster + "-key-" + entity
}

// daemonName names the Daemon of, for example, mon.a: <cluster>-mon-a.
func daemonName(cluster, kind, id string) string {
	return cluster + "-" + kind + "-" + id
}

// kindOf is how Ceph itself calls a type of daemon: mon, mgr, osd.
func kindOf(daemonType string) string { return strings.TrimPrefix(daemonType, "ceph-") }

// label names a daemon for people, as Ceph does: mon.a.
func label(d *api.Daemon) string { return kindOf(d.Spec.Type) + "." + d.Spec.ID }
