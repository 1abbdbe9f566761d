package redact

import (
	"encoding/base64"
	"os"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// fixture replaces names of secrets in a text of testdata by values that look like real ones.
func fixture(t *testing.T, name string) (text string, secrets []string) {
	t.Helper()
	b, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	text = string(b)
	for _, s := range realLooking {
		if strings.Contains(text, s.name) {
			secrets = append(secrets, strings.Split(s.value, "\n")...)
			text = strings.ReplaceAll(text, s.name, s.value)
		}
	}
	return text, secrets
}

// line is what a line of a private key looks like.
const line = "MHcCAQEEIObtRVNDT0RFOjEyMzQ1Njc4OTBhYmNkZWZnaGlqa2xtbm9wcXJzdA"

var realLooking = []struct{ name, value string }{
	{"@CEPHX@", "AQD4" + strings.Repeat("x7Rk", 8) + "Zg=="},
	{"@CEPHNEW@", "AgBy" + strings.Repeat("u8Qm", 13) + "Zz8="},
	{"@PASSWORD@", "correct-horse/battery+staple"},
	{"@JOIN@", "hf1.eyJzIjpbIjEwLjAuMC4xOjc0NDAiXSwiayI6IjEyMyJ9"},
	{"@JSONWEB@", "eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJob2xkZmFzdCJ9.c2lnbmF0dXJl"},
	{"@SIGNED@", "NTY3ODkwYWJjZGVmZ2hpamtsbW5v"},
	{"@KEYLINE@", line},
}

// TestText_patterns: nothing is known, and nothing that looks like a secret is left; what an
// engineer needs is.
func TestText_patterns(t *testing.T) {
	for name, kept := range map[string][]string{
		"ceph.log": {
			"mon.a@0(leader)", "rgw_keystone_admin_user", "osd.3", "entity='client.admin'", "config-key set",
			"auth: unable to find a keyring",
			"10.0.0.1:6789", "rgw_crypt_vault_token_file", "/etc/vault/agent.token",
		},
		"config.json": {
			"osd_memory_target", "4294967296", "mgr/dashboard/ssl", "rgw_keystone_admin_password",
			"rgw_crypt_vault_auth",
		},
		"agent.log":    {"host=h1", "retry in 5s", "https://user:", "@registry.example"},
		"objects.yaml": {"secretName: ceph-key-osd.3", "name: h1", "osd_max_scrubs"},
	} {
		text, secrets := fixture(t, name)
		if len(secrets) == 0 {
			t.Fatalf("%s has no secret", name)
		}
		out := New(nil).Text(text)
		for _, s := range secrets {
			if strings.Contains(out, s) {
				t.Errorf("%s: %q is left in:\n%s", name, s, out)
			}
		}
		for _, want := range kept {
			if !strings.Contains(out, want) {
				t.Errorf("%s: %q is gone from:\n%s", name, want, out)
			}
		}
		if again := New(nil).Text(out); again != out {
			t.Errorf("%s: a second time it is\n%s", name, again)
		}
	}
}

// TestText_known: a value that is known is found in any form, and in a name that says nothing.
func TestText_known(t *testing.T) {
	const value = "b52w/Kd+81"
	r := New([]string{value, "b52w", "b52w/K", ""})
	text := "it said " + value + " and " + base64.StdEncoding.EncodeToString([]byte(value)) +
		" and b52w%2FKd%2B81; b52w stays\n"
	if out := r.Text(text); out != "it said [redacted] and [redacted] and [redacted]; b52w stays\n" {
		t.Error(out)
	}
}

func TestValues(t *testing.T) {
	pem := "-----BEGIN EC PRIVATE KEY-----\n" + line + "\n-----END EC PRIVATE KEY-----\n"
	values := Values(map[string][]byte{
		"fsid":    []byte("0815-4711"),
		"keyring": []byte("[osd.3]\n\tkey = abcdefghij\n\tcaps mon = x\n"), "tls.key": []byte(pem),
	})
	out := New(values).Text("0815-4711 abcdefghij " + line)
	if out != "0815-4711 [redacted] [redacted]" {
		t.Error(out)
	}
}

func TestObject(t *testing.T) {
	u := &unstructured.Unstructured{Object: map[string]any{
		"kind": "Secret", "metadata": map[string]any{
			"name": "s", "annotations": map[string]any{
				"kubectl.kubernetes.io/last-applied-configuration": "hunter2",
				"a": "b",
			},
		},
		"data": map[string]any{"user": "aHVudGVyMg=="},
		"config": map[string]any{
			"rgw_keystone_admin_password": "hunter2\nhunter2", "secretName": "kept",
			"items": []any{map[string]any{"token": "hunter2"}},
		},
	}}
	Object(u)
	out, err := u.MarshalJSON()
	text := string(out)
	if err != nil || strings.Contains(text, "hunter2") || strings.Contains(text, "aHVu") {
		t.Errorf("%v: %s", err, text)
	}
	for _, want := range []string{
		`"user":"[redacted]"`, `"a":"b"`, `"secretName":"kept"`,
		"rgw_keystone_admin_password",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s in %s", want, text)
		}
	}
}
