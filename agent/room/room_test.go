package room

import (
	"testing"

	"golang.org/x/sys/unix"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// TestJudge: a file system without room, without inodes, or that is read-only cannot be written to.
func TestJudge(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		s    unix.Statfs_t
		want api.Reason
	}{
		"it has room":         {unix.Statfs_t{Bsize: 4096, Bavail: 1 << 20, Files: 1000, Ffree: 900}, ""},
		"it counts no inodes": {unix.Statfs_t{Bsize: 4096, Bavail: 1 << 20}, ""},
		"it is full":          {unix.Statfs_t{Bsize: 4096, Bavail: 100, Files: 1000, Ffree: 900}, api.ReasonDiskFull},
		"no inode is left":    {unix.Statfs_t{Bsize: 4096, Bavail: 1 << 20, Files: 1000}, api.ReasonDiskFull},
		"it is read-only":     {unix.Statfs_t{Bsize: 4096, Bavail: 1 << 20, Flags: unix.ST_RDONLY}, api.ReasonReadOnly},
	} {
		c := judge("/var/lib/holdfast", &tt.s)
		if bad := c.Status == metav1.ConditionFalse; bad != (tt.want != "") || bad && c.Reason != string(tt.want) {
			t.Errorf("%s: %s, %s: %s", name, c.Status, c.Reason, c.Message)
		}
	}
	if c, ok := Condition(t.TempDir()); !ok || c.Type != api.HostDirectoryWritable {
		t.Errorf("of a directory: %+v", c)
	}
}
