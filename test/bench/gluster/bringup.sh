#!/usr/bin/env bash
# The shortest hand-written way to the same volume on the same hosts: a trusted pool of three, a file system on a disk of each, a
# volume of three copies on them. It waits for nothing that GlusterFS itself does not wait for, and does not survive a second run or
# a reboot; that is what it is compared without.
#
# usage: bringup.sh VOLUME, with the environment
#   HOST1..HOST3  the pid of each host's init; IP1..IP3 their addresses; DISK1..DISK3 a device of each
set -euo pipefail
volume=$1
on() { local pid="HOST$1"; shift; nsenter --target "${!pid}" --net --uts --mount --ipc --pid -- "$@"; }

waits=() bricks=()
for i in 1 2 3; do
  disk="DISK$i" ip="IP$i"
  on $i sh -ec "mkfs.xfs -q -i size=512 ${!disk}; mkdir -p /var/brick; mount ${!disk} /var/brick; mkdir /var/brick/$volume" &
  waits+=($!)
  on $i sh -ec 'mkdir -p /var/run/gluster /var/log/glusterfs; glusterd' &
  waits+=($!)
  bricks+=("${!ip}:/var/brick/$volume")
done
for w in "${waits[@]}"; do wait "$w"; done
on 1 sh -ec "gluster --mode=script peer probe $IP2; gluster --mode=script peer probe $IP3"
# A peer that was probed is 'in the cluster' a little later; until then a volume is refused.
until on 1 gluster --mode=script volume create "$volume" replica 3 "${bricks[@]}"; do sleep 0.05; done
on 1 gluster --mode=script volume start "$volume"
