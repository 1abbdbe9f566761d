#!/usr/bin/env bash
# What an administrator does by hand with an OSD, in the shortest way that loses nothing: 'add DISK DIR' makes one and prints its number,
# 'remove ID DISK DIR' takes it from the cluster, 'replace ID DISK DIR' makes it anew on another disk after the first one failed. Each
# ends when all placement groups are active+clean. It needs CEPH_CONF and the administrator's keyring, as 'holdfast ceph shell' sets them.
set -euo pipefail

clean() {
  until ceph -s -f json | jq -e '.osdmap.num_up_osds == .osdmap.num_in_osds and .osdmap.num_in_osds == .osdmap.num_osds and
    ([.pgmap.pgs_by_state[]? | select(.state_name == "active+clean") | .count] | add) == .pgmap.num_pgs' >/dev/null; do
    sleep 0.1
  done
}

# quiet runs a command, and shows what it says only when it fails.
quiet() {
  local said
  said=$("$@" 2>&1 >/dev/null) || { echo "$*: $said" >&2; return 1; }
}

# start makes the store of an OSD and starts it. Its options are those of all OSDs of the cluster.
start() {
  local id=$1 uuid=$2 disk=$3 dir=$4
  mkdir -p "$dir"
  ln -sfn "$disk" "$dir/block"
  ceph auth get-or-create "osd.$id" mgr 'allow profile osd' mon 'allow profile osd' osd 'allow *' -o "$dir/keyring"
  local configs=(/var/lib/holdfast/agent/daemons/default.ceph-osd-*/data/ceph.conf)
  local options=(-c "${configs[0]}" -i "$id" --osd-data "$dir" --keyring "$dir/keyring" --osd-uuid "$uuid" --admin-socket "$dir/asok" --pid-file "$dir/pid" --log-file "$dir/log")
  quiet ceph-osd "${options[@]}" --mkfs
  quiet setsid ceph-osd "${options[@]}" # it goes to the background by itself
}

case $1 in
  add)
    read -r uuid </proc/sys/kernel/random/uuid
    id=$(ceph osd new "$uuid")
    start "$id" "$uuid" "$2" "$3"
    echo "$id"
    ;;
  remove)
    quiet ceph osd out "$2"
    until ceph osd safe-to-destroy "osd.$2" >/dev/null 2>&1; do sleep 0.1; done
    pid=$(<"$4/pid")
    kill "$pid"
    tail --pid="$pid" -f /dev/null
    quiet ceph osd purge "$2" --yes-i-really-mean-it
    quiet dd if=/dev/zero of="$3" bs=1M count=10 conv=fsync
    rm -rf "$4"
    ;;
  replace)
    quiet ceph osd destroy "$2" --yes-i-really-mean-it
    rm -rf "$4"
    read -r uuid </proc/sys/kernel/random/uuid
    ceph osd new "$uuid" "$2" >/dev/null
    start "$2" "$uuid" "$3" "$4"
    ;;
esac
clean
