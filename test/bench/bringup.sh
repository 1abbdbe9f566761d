#!/usr/bin/env bash
# The shortest hand-written way to the same cluster on the same hosts: 3 monitors, 2 managers, 3 OSDs. Keys are seeded
# before the monitors start, everything that Ceph allows runs in parallel, and commands go through one librados connection.
# It does not survive a crash, a second run, or a reboot; that is what it is compared without.
#
# usage: bringup.sh ROOT CONFIG, with the environment
#   HOST1..HOST3  the pid of each host's init; IP1..IP3 their addresses; DISK1..DISK3 a device of each
#   MONCMD        a program that sends commands to the monitors (see moncmd.go)
set -euo pipefail
root=$1 config=$2

start=$EPOCHREALTIME
step() { printf 'step %.3f %s\n' "$(bc <<<"$EPOCHREALTIME - $start")" "$*"; }
on() { local pid="HOST$1"; shift; nsenter --target "${!pid}" --net --uts --mount --ipc --pid -- "$@"; }

mkdir -p "$root"/{run,log,crash}
fsid=$(cat /proc/sys/kernel/random/uuid)
mons="[v2:$IP1:3300,v1:$IP1:6789],[v2:$IP2:3300,v1:$IP2:6789],[v2:$IP3:3300,v1:$IP3:6789]"
cat >"$root/ceph.conf" <<CONF
[global]
fsid = $fsid
mon_host = $mons
mon_initial_members = a,b,c
admin_socket = $root/run/\$name.asok
pid_file = $root/run/\$name.pid
log_file = $root/log/\$name.log
run_dir = $root/run
crash_dir = $root/crash
auth_allow_insecure_global_id_reclaim = false
osd_crush_chooseleaf_type = 1
$(cat "$config")
[client]
keyring = $root/admin.keyring
admin_socket =
log_file = /dev/null
[mon]
mon_data = $root/mon.\$id
[mgr]
mgr_data = $root/mgr.\$id
keyring = $root/seed.keyring
[osd]
osd_data = $root/osd.\$id
keyring = $root/osd.\$id/keyring
CONF
key() {
  printf '[%s]\n\tkey = %s\n' "$1" "$(ceph-authtool --gen-print-key)"
  shift
  for cap in "$@"; do printf '\tcaps %s = "%s"\n' "${cap%%=*}" "${cap#*=}"; done
}
{
  key mon. 'mon=allow *'
  key client.admin 'mon=allow *' 'osd=allow *' 'mds=allow *' 'mgr=allow *' | tee "$root/admin.keyring"
  for m in a b; do key "mgr.$m" 'mon=allow profile mgr' 'osd=allow *' 'mds=allow *'; done
} >"$root/seed.keyring"
monmaptool --create --fsid "$fsid" --set-min-mon-release 16 \
  --addv a "[v2:$IP1:3300,v1:$IP1:6789]" --addv b "[v2:$IP2:3300,v1:$IP2:6789]" --addv c "[v2:$IP3:3300,v1:$IP3:6789]" \
  "$root/monmap" >/dev/null
step "keys and monmap"

i=0
for m in a b c; do
  i=$((i + 1))
  { ceph-mon -c "$root/ceph.conf" --mkfs -i "$m" --monmap "$root/monmap" --keyring "$root/seed.keyring" &&
    on $i ceph-mon -c "$root/ceph.conf" -i "$m"; } &
done
commands=()
for o in 0 1 2; do
  uuid=$(cat /proc/sys/kernel/random/uuid) secret=$(ceph-authtool --gen-print-key) disk="DISK$((o + 1))"
  mkdir -p "$root/osd.$o"
  ln -s "${!disk}" "$root/osd.$o/block"
  printf '[osd.%s]\n\tkey = %s\n' "$o" "$secret" >"$root/osd.$o/keyring"
  commands+=("{\"prefix\":\"osd new\",\"uuid\":\"$uuid\",\"id\":$o}<<{\"cephx_secret\":\"$secret\"}")
  on $((o + 1)) ceph-osd -c "$root/ceph.conf" -i "$o" --mkfs --osd-uuid "$uuid" --no-mon-config 2>>"$root/log/mkfs.err" &
done
wait
step "monitors started, OSDs made"

"$MONCMD" "$root/ceph.conf" "${commands[@]}"
step "quorum, OSDs known"

for o in 0 1 2; do on $((o + 1)) ceph-osd -c "$root/ceph.conf" -i "$o" 2>>"$root/log/osd.err" & done
i=0
for m in a b; do
  i=$((i + 1))
  mkdir -p "$root/mgr.$m"
  on $i ceph-mgr -c "$root/ceph.conf" -i "$m" &
done
wait
step "OSDs and managers started"

"$MONCMD" "$root/ceph.conf" ready
step "ready"
