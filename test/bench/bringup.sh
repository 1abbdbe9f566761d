#!/usr/bin/env bash
# The shortest hand-written way to the same cluster on the same hosts: 3 monitors, 2 managers, 3 OSDs. All keys, also those
# of the OSDs, are in the monitors' first keyring; so nothing has to be registered, and nothing waits for anything that Ceph
# itself does not wait for. It does not survive a crash, a second run, or a reboot; that is what it is compared without.
#
# usage: bringup.sh ROOT CONFIG, with the environment
#   HOST1..HOST3  the pid of each host's init; IP1..IP3 their addresses; DISK1..DISK3 a device of each
#   MONCMD        a program that sends commands to the monitors (see commands.go)
set -euo pipefail
root=$1 config=$2
on() { local pid="HOST$1"; shift; exec nsenter --target "${!pid}" --net --uts --mount --ipc --pid -- "$@"; }

mkdir -p "$root"/{run,log,crash,osd.0,osd.1,osd.2,mgr.a,mgr.b}
read -r fsid </proc/sys/kernel/random/uuid
a="[v2:$IP1:3300,v1:$IP1:6789]" b="[v2:$IP2:3300,v1:$IP2:6789]" c="[v2:$IP3:3300,v1:$IP3:6789]"
monmaptool --create --fsid "$fsid" --set-min-mon-release 16 --addv a "$a" --addv b "$b" --addv c "$c" "$root/monmap" >/dev/null &
monmap=$!
cat >"$root/ceph.conf" <<CONF
[global]
fsid = $fsid
mon_host = $a,$b,$c
mon_initial_members = a,b,c
mon_cluster_log_to_file = false
auth_allow_insecure_global_id_reclaim = false
osd_crush_chooseleaf_type = 1
osd_pool_default_size = 3
admin_socket = $root/run/\$name.asok
pid_file = $root/run/\$name.pid
log_file = $root/log/\$name.log
run_dir = $root/run
crash_dir = $root/crash
keyring = $root/keyring
$(<"$config")
[mon]
mon_data = $root/mon.\$id
[mgr]
mgr_data = $root/mgr.\$id
[osd]
osd_data = $root/osd.\$id
CONF

# A cephx key is its type (1, AES), the time of its making (8 bytes), the length of the secret, and the secret, in base64.
key() {
  printf '[%s]\n\tkey = %s\n' "$1" "$({ printf '\1\0\0\0\0\0\0\0\0\0\20\0'; head -c 16 /dev/urandom; } | base64)"
  shift
  printf '\tcaps %s\n' "$@"
}
{
  key mon. 'mon = "allow *"'
  key client.admin 'mon = "allow *"' 'osd = "allow *"' 'mds = "allow *"' 'mgr = "allow *"'
  for m in a b; do key "mgr.$m" 'mon = "allow profile mgr"' 'osd = "allow *"' 'mds = "allow *"'; done
  for o in 0 1 2; do key "osd.$o" 'mgr = "allow profile osd"' 'mon = "allow profile osd"' 'osd = "allow *"'; done
} >"$root/keyring"

wait $monmap
conf=$root/ceph.conf i=0
for m in a b c; do
  i=$((i + 1)) o=$i-1
  o=$((o)) disk="DISK$i"
  on $i sh -c "ceph-mon -c $conf --mkfs -i $m --monmap $root/monmap --keyring $root/keyring && exec ceph-mon -c $conf -i $m" &
  ln -s "${!disk}" "$root/osd.$o/block"
  on $i sh -c "ceph-osd -c $conf -i $o --mkfs --osd-uuid $(</proc/sys/kernel/random/uuid) --no-mon-config && exec ceph-osd -c $conf -i $o" \
    2>"$root/log/osd.$o.err" &
done
on 1 ceph-mgr -c "$conf" -i a &
on 2 ceph-mgr -c "$conf" -i b &
"$MONCMD" mon-commands "$conf" ready
wait
