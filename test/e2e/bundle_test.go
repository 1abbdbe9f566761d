package e2e

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/holdfast-storage/holdfast/test/home"
)

// TestSupportBundle looks for every secret of a real cluster in what 'support-bundle' writes of it, and for what an
// engineer needs. It also reads logs and devices by their commands.
func TestSupportBundle(t *testing.T) {
	begin(t)
	b := newBed(t, 3, 1)
	b.mustApply(home.SpecFor(b.Lab, 3, 2, 1).YAML())
	b.await("Ceph to be well", func() error { return b.health(3, 3) })
	b.ceph("config", "set", "client.rgw", "rgw_keystone_admin_password", plainSecrets[0])
	b.ceph("config-key", "set", "some/thing", plainSecrets[1])
	b.ceph("auth", "get-or-create", "client.byhand", "mon", "allow r")
	secrets := append(b.secretsOfAPI(), plainSecrets...)
	for _, h := range b.Lab.Hosts() {
		secrets = append(secrets, secretsIn(h.Run(t, t.Context(), "sh", "-c",
			`find /var/lib/holdfast -type f \( -name '*key*' -o -name '*.kubeconfig' -o -name '*.pem' \) `+
				`-size -64k -exec cat {} +`))...)
	}
	secrets = append(secrets, secretsIn(b.ceph("auth", "export"))...)
	if len(secrets) < 30 {
		t.Fatalf("%d secrets were found", len(secrets))
	}

	const path = "/var/lib/holdfast/bundle.tar.gz" // a directory that the host has for itself
	out := b.run("support-bundle", "-o", path)
	h := b.Lab.Host(1)
	files := h.Run(t, t.Context(), "sh", "-c", "stat -c %a "+path+"; tar tzf "+path)
	text := h.Run(t, t.Context(), "tar", "xzOf", path)
	t.Logf("a bundle of %d bytes: %s", len(text), h.Run(t, t.Context(), "tar", "xzOf", path,
		"holdfast-support/NOT-COLLECTED.txt"))
	if !strings.HasPrefix(files, "600\n") {
		t.Errorf("its mode is %.4s", files)
	}
	for _, s := range secrets {
		if at := strings.Index(text, s); at >= 0 {
			t.Errorf("a secret of %d bytes is in the bundle, after %q", len(s), text[max(0, at-200):at])
		}
	}
	for _, name := range []string{
		"objects/Daemon.yaml", "objects/Secret.yaml", "clusters/default.ceph/status.txt", "quorum.txt", "metrics.txt",
		"ceph/default.ceph/status.txt", "ceph/default.ceph/osd-df-tree.txt",
		"ceph/default.ceph/pg-dump-brief.txt", "daemon.log",
	} {
		if !strings.Contains(files, name) {
			t.Errorf("no %s in:\n%s\n%s", name, files, out)
		}
	}
	for _, words := range []string{"HEALTH_", "rgw_keystone_admin_password", "PG_STAT", "TOTAL", "holdfast_"} {
		if !strings.Contains(text, words) {
			t.Errorf("the bundle does not say %s", words)
		}
	}
	b.readsLogs()
	b.listsDevices()
}

// plainSecrets look like any other word.
var plainSecrets = []string{"sword-fish/17", "kingfisher-18"}

// secretsOfAPI are the values of all Secrets that nobody else may know.
func (b *bed) secretsOfAPI() (all []string) {
	b.Helper()
	var list corev1.SecretList
	if err := json.Unmarshal([]byte(b.run("get", "secrets", "-A", "-o", "json")), &list); err != nil ||
		len(list.Items) == 0 {
		b.Fatalf("reading the Secrets: %v", err)
	}
	for _, s := range list.Items {
		for name, value := range s.Data {
			text := strings.TrimSpace(string(value))
			all = append(all, secretsIn(text)...)
			if name == "key" || name == "luks" {
				all = append(all, text)
			}
		}
	}
	return all
}

var secretLine = regexp.MustCompile(`(?m)^\s*(?:key = |client-key-data: )(\S+)`)

// secretsIn are the keys of keyrings and kubeconfigs in a text, and the lines of its private keys.
func secretsIn(text string) (all []string) {
	for _, found := range secretLine.FindAllStringSubmatch(text, -1) {
		all = append(all, found[1])
	}
	inside := false
	for line := range strings.Lines(text) {
		switch line = strings.TrimSpace(line); {
		case strings.Contains(line, "PRIVATE KEY"):
			inside = strings.Contains(line, "BEGIN")
		case inside && len(line) > 16:
			all = append(all, line)
		}
	}
	return all
}

// readsLogs reads the log of a daemon of the first host, there and from elsewhere.
func (b *bed) readsLogs() {
	b.Helper()
	d := b.daemonOf(1, "ceph-osd")
	name := "osd." + d.Spec.ID
	// Ceph ends entries with an empty line, and what stands at the end of an output is cut.
	if n := len(strings.Split(b.run("logs", name, "--tail", "20"), "\n")); n < 15 || n > 20 {
		b.Errorf("logs --tail 20 prints %d lines", n)
	}
	if out := b.run("logs", "daemon/"+d.Name, "--since", "1h"); !strings.Contains(out, "process ceph-osd") {
		b.Errorf("logs --since: %.500s", out)
	}
	out, err := b.HoldfastOn(2, "logs", name, "--since", "1h")
	if err != nil || strings.Count(out, "\n") < 20 {
		b.Errorf("logs on another host: %v: %.200s", err, out)
	}
}

// listsDevices finds each OSD at its disk, and no way to wipe one.
func (b *bed) listsDevices() {
	b.Helper()
	d := b.daemonOf(2, "ceph-osd")
	out := b.run("device", "list", d.Spec.Host)
	if !strings.Contains(out, "osd."+d.Spec.ID+", node/") {
		b.Errorf("device list: %s", out)
	}
	id := d.Spec.Devices[0].ID
	if out, err := b.Holdfast("device", "wipe", id, "--confirm", id, "--wait"); err == nil ||
		!strings.Contains(err.Error(), "is in use by daemon") {
		b.Errorf("the disk of an OSD may be wiped: %v: %s", err, out)
	}
}
