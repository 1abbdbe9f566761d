package ganesha

import (
	"strings"
	"testing"
)

func TestConf(t *testing.T) {
	text := Conf("10.0.0.1", []Export{
		{ID: 1, Path: "/", Pseudo: "/vol1", Squash: "root", FSAL: Gluster("10.0.0.1", "vol1", "/")},
		{ID: 7, Path: "/a", Pseudo: "/b", ReadOnly: true, Squash: "none", Clients: []string{"10.1.0.0/16", "10.2.0.1"}, FSAL: Gluster("10.0.0.1", "vol1", "/a")},
	})
	for _, want := range []string{
		`Protocols = 4; NFS_Port = 2049; Bind_addr = 10.0.0.1;`,
		`EXPORT { Export_Id = 1; Path = "/"; Pseudo = "/vol1"; Squash = Root_Squash; Access_Type = RW; FSAL { Name = GLUSTER; Hostname = "10.0.0.1"; Volume = "vol1"; volpath = "/"; glfs_log = "${LOG}/gfapi.log"; } }`,
		`Squash = No_Root_Squash; Access_Type = None; CLIENT { Clients = 10.1.0.0/16, 10.2.0.1; Access_Type = RO; Squash = No_Root_Squash; } CLIENT { Clients = 10.0.0.1; Access_Type = MDONLY_RO; }`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
}

// TestConf_refuses: what would be another line or block of the configuration is never written.
func TestConf_refuses(t *testing.T) {
	for what, write := range map[string]func(){
		"address": func() { Conf("10.0.0.1; } EXPORT { Export_Id = 9", nil) },
		"zone":    func() { Conf("fe80::1%x; }", nil) },
		"path":    func() { Conf("10.0.0.1", []Export{{Path: "/a\"; Access_Type = RW; #", Pseudo: "/a"}}) },
		"line":    func() { Conf("10.0.0.1", []Export{{Path: "/a", Pseudo: "/a\n}"}}) },
		"client":  func() { Conf("10.0.0.1", []Export{{Path: "/a", Pseudo: "/a", Clients: []string{"*"}}}) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("the %s was written", what)
				}
			}()
			write()
		}()
	}
}

func TestParse(t *testing.T) {
	if r, err := Parse(""); r != nil || err != nil {
		t.Errorf("of nothing: %v, %v", r, err)
	}
	if r, err := Parse(`{"generation":2,"current":true,"exports":{"/a":"no"}}`); err != nil || !r.Current || r.Exports["/a"] != "no" {
		t.Errorf("%+v, %v", r, err)
	}
	if _, err := Parse("{"); err == nil {
		t.Error("no error")
	}
}
