// Package ceph holds the host's side of Ceph's daemons: it makes a monitor's store and an OSD's device. Each step may be
// cut off anywhere and done again: what is half made is never used.
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
