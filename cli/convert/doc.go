// Package convert turns files that were written for QuarterMaster or for heketi into documents of
// Holdfast's kinds: a StorageCluster, and a StorageNode for each of its nodes. What Holdfast has no
// field for is named in a comment, or refused with its file and line. Only command.go does I/O.
package convert
