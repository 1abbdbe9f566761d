// Package ceph holds the host's side of Ceph's daemons. Each step may be cut off anywhere and done
// again: what is half made is never used.
//
//   - mon.go makes a mon's store, or fills a lost one from the other mons; osd.go and found.go make and
//     find an OSD on its devices, slot.go its partitions, encryption.go its LUKS layer, package gate wipes.
//   - mgr.go, mds.go, rgw*.go and rbdmirror.go configure the other types; rgwadmin.go and rgwusers.go
//     carry out the driver's commands on users of a store.
//   - takeover*.go, bootunits.go and runbefore.go take over daemons that other units or people started.
//   - recover*.go rebuilds the store of a mon, also from the OSDs of the host.
package ceph

// The files, devices and parameters of a Daemon that the driver for Ceph and these agents both know by name.
const (
	fileConf      = "ceph.conf"
	fileKeyring   = "keyring"
	fileClass     = "crush_device_class"
	deviceBlock   = "block"
	deviceDB      = "block.db"
	deviceWAL     = "block.wal"
	paramFSID     = "fsid"
	paramAddress  = "address"
	paramMonmap   = "monmap"
	paramFounded  = "founded"
	paramRejoin   = "rejoin"
	paramOSDUUID  = "osdUUID"
	paramClass    = "deviceClass"
	paramDrain    = "drain"
	drainReplace  = "replace"
	paramStore    = "foreignStore"
	directoryName = "store"
)
