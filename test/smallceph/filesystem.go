package smallceph

import (
	"os"
)

// Filesystem makes a CephFS and starts an MDS for it, which is active when Filesystem returns.
func (c *Cluster) Filesystem(name string) {
	c.t.Helper()
	for _, pool := range []string{name + ".meta", name + ".data"} {
		c.Mon(map[string]any{"prefix": "osd pool create", "pool": pool, "pg_num": 8})
	}
	c.awaitActive()
	c.Mon(map[string]any{"prefix": "fs new", "fs_name": name, "metadata": name + ".meta", "data": name + ".data"})
	c.startMDS()
	c.await("the MDS to be active", func() bool {
		var dump struct {
			Filesystems []struct {
				Map struct {
					Name string `json:"fs_name"`
					Info map[string]struct{ State string }
				} `json:"mdsmap"`
			}
		}
		c.read(c.Mon(map[string]any{"prefix": "fs dump", "format": "json"}), &dump)
		for _, f := range dump.Filesystems {
			for _, mds := range f.Map.Info {
				if f.Map.Name == name && mds.State == "up:active" {
					return true
				}
			}
		}
		return false
	})
}

// MDS is the process of the MDS.
func (c *Cluster) MDS() *os.Process { return c.mds.Process }

func (c *Cluster) startMDS() {
	key := c.Key("mds.a", "mon", "allow profile mds", "mgr", "allow profile mds", "mds", "allow *", "osd", "allow *")
	c.write("mds.keyring", "[mds.a]\n\tkey = "+key+"\n")
	c.mds = c.start("ceph-mds", "-i", "a", "--keyring", c.path("mds.keyring"))
}
