// Package rbd makes and asks images of Ceph (RADOS block devices) by librbd.
//
// A Pool sends commands to the child of package rados, which has loaded librbd beside librados: a
// library that crashes or hangs costs a child. Library and Session are the child's side. Package
// rados alone uses them.
package rbd
