#!/bin/busybox sh
# shellcheck shell=dash
# A host whose OSDs ceph-volume makes when it boots first, as a person would with Ceph's packages, and on which the agent of Holdfast runs. The agent keeps
# its state on the disk vdd. There is no udev, so that nobody activates logical volumes at a boot, and no systemd.
# shellcheck source=/dev/null
. /etc/machine # HOLDFAST and PYTHON, the programs
PATH=/bin:/usr/bin:/usr/sbin
chmod -R a+rX /bin /etc /lib /usr # for user ceph
chmod 755 /
chmod 600 /etc/ceph/bootstrap.keyring
mkdir -p /run/lvm /run/lock /run/ceph /var
chown ceph:ceph /run/ceph
ln -s "$PYTHON" /usr/bin/python3
for tool in lvs pvs vgs lvcreate pvcreate vgcreate lvchange vgchange lvremove pvremove vgremove; do ln -s lvm "/bin/$tool"; done
/bin/blkid /dev/vdd >/dev/null || /bin/mke2fs -q -t ext4 /dev/vdd
mount -t ext4 /dev/vdd /var
hostname v1
logs() { tail -F -n 20 /var/lib/holdfast/agent/daemons/default.ceph-osd-3/log/daemon.log /var/lib/holdfast/agent/daemons/default.ceph-osd-4/log/daemon.log 2>/dev/null; }
if [ -e /var/joined ]; then
  logs &
  exec "$HOLDFAST" agent </dev/null
fi

volume() { ceph-volume lvm create --bluestore --no-systemd "$@" || { tail -n 60 /var/log/ceph/ceph-volume.log; exit 1; }; }
mkdir -p /var/lib/ceph/bootstrap-osd /var/lib/ceph/osd /var/log/ceph
chown ceph:ceph /var/log/ceph
ln -s /run /var/run
cp /etc/ceph/bootstrap.keyring /var/lib/ceph/bootstrap-osd/ceph.keyring
volume --data /dev/vda
echo "the first OSD is made"
volume --dmcrypt --data /dev/vdb --block.db /dev/vdc
lvs -o vg_name,lv_name,lv_uuid,lv_tags
for id in 3 4; do ceph-osd -i "$id" --setuser ceph --setgroup ceph; done
echo "the OSDs are made"
logs &
touch /var/joined
exec "$HOLDFAST" agent --join - </token
