package ceph

import (
	"strings"
	"testing"
)

func TestClientFiles(t *testing.T) {
	f := withFake(threeHosts())
	if _, _, err := ClientFiles(t.Context(), f.view(), f, "/k"); err == nil {
		t.Error("a cluster without mons has client files")
	}
	f.round(t)
	conf, keyring, err := ClientFiles(t.Context(), f.view(), f, "/k")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"fsid = " + worldUID + "\n", "mon_host = [v2:10.0.0.1:3300,", "keyring = /k\n"} {
		if !strings.Contains(string(conf), want) {
			t.Errorf("%q is not in\n%s", want, conf)
		}
	}
	key := string(f.secrets["c-key-client.admin"].data[secretKey])
	if want := "[client.admin]\n\tkey = " + key + "\n"; string(keyring) != want || strings.Contains(string(conf), key) {
		t.Errorf("keyring %q", keyring)
	}
}
