package storage

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"

	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// clientDir is where the clients on the first node have their files, and mounted where the
// filesystem is mounted there.
const (
	clientDir = "/var/lib/clients"
	mounted   = "/run/home"
)

// clients gives the first node what clients of the services need, and mounts the filesystem there by
// FUSE.
func (b *bed) clients() {
	b.t.Helper()
	n := b.Node(1)
	cmd := exec.CommandContext(b.t.Context(), "../../../bin/holdfast", "--kubeconfig", b.Kubeconfig, "-n", ns, "ceph",
		"client-files", "desktop", n.Path(clientDir))
	if out, err := cmd.CombinedOutput(); err != nil {
		b.t.Fatalf("holdfast ceph client-files: %v\n%s", err, out)
	}
	b.s3Conf()
	n.Run(b.t, b.t.Context(), "mkdir", "-p", mounted)
	b.await("the filesystem to be mounted", func(ctx context.Context) error {
		_, err := n.Try(ctx, "ceph-fuse", "--conf", clientDir+"/ceph.conf", "--keyring",
			clientDir+"/ceph.client.desktop.keyring", "-n", "client.desktop", "--client_fs", "home", mounted)
		return err
	})
}

// s3Conf writes the configuration of s3cmd, but for the gateway.
func (b *bed) s3Conf() {
	b.t.Helper()
	s, err := b.Client().CoreV1().Secrets(ns).Get(b.t.Context(), b.field("objectstoreuser/app", ".status.secret"),
		meta.GetOptions{})
	if err != nil {
		b.t.Fatal(err)
	}
	conf := fmt.Sprintf("[default]\naccess_key = %s\nsecret_key = %s\nuse_https = False\n", s.Data["accessKey"],
		s.Data["secretKey"])
	if err := os.WriteFile(b.Node(1).Path(clientDir+"/s3.cfg"), []byte(conf), 0o600); err != nil {
		b.t.Fatal(err)
	}
}

// used has each service used: a file with its own name in it is written and read by FUSE, by NFS and
// by S3.
func (b *bed) used(name string) {
	b.t.Helper()
	n, file := b.Node(1), clientDir+"/"+name
	n.Run(b.t, b.t.Context(), "sh", "-c", `printf %s "$0" >"$1" && printf %s "$0" >"$2"`, name, file, mounted+"/"+name)
	b.await(name+" to be written by NFS", func(ctx context.Context) error {
		_, err := n.Try(ctx, "nfs-cp", file, b.nfsURL("nfs-"+name))
		return err
	})
	b.s3Put(name)
	b.read(name)
}

// read reads what used has written. By NFS the file is the same as by FUSE.
func (b *bed) read(name string) {
	b.t.Helper()
	n := b.Node(1)
	for from, args := range map[string][]string{
		"FUSE": {"cat", mounted + "/" + name}, "FUSE, after NFS": {"cat", mounted + "/nfs-" + name},
		"NFS": {"nfs-cat", b.nfsURL(name)}, "S3": b.s3(0, "get", "s3://bucket/"+name, "-"),
		"the other gateway": b.s3(1, "get", "s3://bucket/"+name, "-"),
	} {
		b.await(name+" to be read by "+from, func(ctx context.Context) error {
			out, err := n.Try(ctx, args[0], args[1:]...)
			if err == nil && out != name {
				err = fmt.Errorf("it reads %q", out)
			}
			return err
		})
	}
}

func (b *bed) nfsURL(file string) string {
	b.t.Helper()
	source := strings.Replace(b.field("nfsexport/home", ".status.source"), ":", "", 1)
	return "nfs://" + source + "/" + file + "?version=4"
}

// s3 is a command of s3cmd with a gateway.
func (b *bed) s3(gateway int, args ...string) []string {
	b.t.Helper()
	at := strings.TrimPrefix(b.field("objectstore/s3", fmt.Sprintf(".status.endpoints[%d]", gateway)), "http://")
	own := []string{"s3cmd", "--quiet", "-c", clientDir + "/s3.cfg", "--host=" + at, "--host-bucket=" + at}
	return append(own, args...)
}

// s3Put writes an object into a bucket that is made if there is none.
func (b *bed) s3Put(name string) {
	b.t.Helper()
	n, file := b.Node(1), clientDir+"/"+name
	n.Run(b.t, b.t.Context(), "sh", "-c", `printf %s "$0" >"$1"`, name, file)
	for _, args := range [][]string{b.s3(0, "mb", "s3://bucket"), b.s3(0, "put", file, "s3://bucket/"+name)} {
		b.await(name+" to be written by S3", func(ctx context.Context) error {
			_, err := n.Try(ctx, args[0], args[1:]...)
			return err
		})
	}
}
