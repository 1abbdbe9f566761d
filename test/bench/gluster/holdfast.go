package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/holdfast-storage/holdfast/test/hosts"
)

// apply makes the volume by Holdfast: one command, on hosts where its servers run already.
func (b *bench) apply(ctx context.Context) error {
	cmd := b.lab.Host(1).Command(ctx, b.home.Binary, "apply", "-f", "-", "--wait", "-o", "json")
	cmd.Stdin = strings.NewReader(b.spec)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("holdfast apply failed: %w\n%s", err, out)
	}
	return nil
}

// wipe deletes the cluster, and waits until its devices are free.
func (b *bench) wipe(t hosts.T) error {
	b.home.Wipe(t, b.spec)
	b.home.AwaitFreeDisks(t)
	return nil
}

// spec declares the same as the script makes.
func spec(lab *hosts.Lab) string {
	var s strings.Builder
	s.WriteString("apiVersion: holdfast.io/v1alpha1\nkind: StorageCluster\nmetadata: {name: gluster}\n" +
		"spec: {type: glusterfs, deletionPolicy: Wipe}\n")
	for i, h := range lab.Hosts() {
		fmt.Fprintf(&s, "---\napiVersion: holdfast.io/v1alpha1\nkind: StorageNode\nmetadata: {name: %s}\n"+
			"spec: {type: glusterfs, cluster: gluster, nodeSelector: {kubernetes.io/hostname: %s}, storageNetwork: {ips: [%s]},\n"+
			"  devices: [%q], glusterfs: {zone: %d}}\n", h.Name, h.Name, h.IP, h.Disk(0).ID(), i+1)
	}
	fmt.Fprintf(&s, "---\napiVersion: holdfast.io/v1alpha1\nkind: Volume\nmetadata: {name: %s}\n"+
		"spec: {cluster: gluster, size: 1Gi, durability: {replicate: {count: %d}}, deletionPolicy: Wipe}\n", volume, count)
	return s.String()
}

// mountAndWrite is the end of both sides: a volume is there when somebody can write to it. With two of three copies there, it can.
const mountAndWrite = `mkdir -p /run/volume && mount -t glusterfs "$1" /run/volume
until { echo written >/run/volume/file && sync /run/volume/file; } 2>/dev/null; do sleep 0.05; done
[ "$(cat /run/volume/file)" = written ]`

func (b *bench) mount(ctx context.Context) error {
	_, err := b.lab.Host(1).Try(ctx, "sh", "-ec", mountAndWrite, "sh", b.lab.Host(1).IP+":/"+volume)
	return err
}

func (b *bench) unmount(ctx context.Context) error {
	_, err := b.lab.Host(1).Try(ctx, "umount", "/run/volume")
	return err
}
