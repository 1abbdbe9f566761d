#!/usr/bin/env bash
# Makes one host's part of a Ceph cluster by hand, in the places where Ceph's packages have it. It reads /etc/ceph/ceph.conf and
# /etc/ceph/seed.keyring, which holds the keys of all; the mons' map is made of the arguments after the fourth.
#
# usage: handmade.sh ID OSD UUID DISK FSID NAME=ADDRESSES …; the environment's MGR names the manager, if there is to be one.
set -euo pipefail
id=$1 osd=$2 uuid=$3 disk=$4 fsid=$5
shift 5
seed=/etc/ceph/seed.keyring lib=/var/lib/ceph
key() { awk -v want="[$1]" '$1 == want {on = 1} on && $1 == "key" {print $3; exit}' $seed; }
only() { printf '[%s]\n\tkey = %s\n' "$1" "$(key "$1")"; }

members=()
for m in "$@"; do members+=(--addv "${m%%=*}" "${m#*=}"); done
monmaptool --create --clobber --fsid "$fsid" --set-min-mon-release 16 "${members[@]}" /tmp/monmap >/dev/null
mkdir -p "$lib/mon" "$lib/osd/ceph-$osd"
only client.admin >/etc/ceph/ceph.client.admin.keyring
ceph-mon --mkfs -i "$id" --monmap /tmp/monmap --keyring $seed
ceph-mon -i "$id"
if [ -n "${MGR:-}" ]; then
  mkdir -p "$lib/mgr/ceph-$MGR"
  only "mgr.$MGR" >"$lib/mgr/ceph-$MGR/keyring"
  ceph-mgr -i "$MGR"
fi
ln -s "$disk" "$lib/osd/ceph-$osd/block"
only "osd.$osd" >"$lib/osd/ceph-$osd/keyring"
ceph-osd -i "$osd" --mkfs --osd-uuid "$uuid" --no-mon-config
ceph-osd -i "$osd"
