// Package room says whether the agent can write to its own directory.
package room

import (
	"fmt"

	"golang.org/x/sys/unix"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

const (
	// least and leastFiles are below what an agent and its daemons can work with.
	least      = 64 << 20
	leastFiles = 64
)

// Condition says whether a directory can be written to; ok is false where its file system cannot be asked.
func Condition(dir string) (c metav1.Condition, ok bool) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return c, false
	}
	return judge(dir, &s), true
}

// judge needs no file system. Its messages have no number that changes by itself: each change is written.
func judge(dir string, s *unix.Statfs_t) metav1.Condition {
	c := metav1.Condition{
		Type: api.HostDirectoryWritable, Status: metav1.ConditionFalse,
		Reason: string(api.ReasonDiskFull),
	}
	switch {
	case s.Flags&unix.ST_RDONLY != 0:
		c.Reason, c.Message = string(api.ReasonReadOnly), fmt.Sprintf("the file system of %s is read-only", dir)
	case s.Bavail*uint64(s.Bsize) < least:
		c.Message = fmt.Sprintf("the file system of %s is full: less than %d MiB are left", dir, least>>20)
	case s.Files > 0 && s.Ffree < leastFiles:
		c.Message = fmt.Sprintf("the file system of %s has room for no more files: less than %d inodes are left", dir,
			leastFiles)
	default:
		c.Status, c.Reason = metav1.ConditionTrue, "Writable"
	}
	return c
}
