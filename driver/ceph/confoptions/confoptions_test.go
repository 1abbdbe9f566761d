package confoptions

import "testing"

func TestTaken(t *testing.T) {
	for _, x := range []struct {
		section, name string
		want          bool
	}{
		{"global", "osd_memory_target", true},
		{"osd.3", "osd_max_backfills", true},
		{"client.rgw.a", "debug_rgw", true},
		{"global", "fsid", false},
		{"odd section", "osd_memory_target", false},
		{"client.rgw.a", "rgw_keystone_admin_password", false},
		{"client.rgw.a", "rgw_crypt_s3_kms_encryption_keys", false},
		{"global", "Odd", false},
	} {
		if got := Taken(x.section, x.name); got != x.want {
			t.Errorf("[%s] %s: %v, want %v", x.section, x.name, got, x.want)
		}
	}
}
