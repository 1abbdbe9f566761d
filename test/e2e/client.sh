#!/usr/bin/env bash
# A client of the pool "client". client.sh DIR write: writes one object after the other until DIR/stop is there. An object whose
# write was acknowledged is listed in DIR/written with its checksum; after each write an older object is read back, and one
# that differs is listed in DIR/wrong. client.sh DIR verify: reads all of them back, and prints how many were right.
set -u
dir=$1
pool=client

# A command that hangs is tried again: Ceph repeats an operation until it is done, however long its peers are away.
persist() {
  until timeout 30 rados -p "$pool" "$@" 2>>"$dir/log"; do
    [ -e "$dir/stop" ] && return 1
    sleep 0.2
  done
}

sum() { sha256sum "$1" | cut -d' ' -f1; }

write() {
  local n=0 old
  while [ ! -e "$dir/stop" ]; do
    n=$((n + 1))
    head -c 65536 /dev/urandom >"$dir/in"
    persist put "o$n" "$dir/in" || break
    echo "o$n $(sum "$dir/in")" >>"$dir/written"
    old=o$((RANDOM % n + 1))
    persist get "$old" "$dir/out" || break
    grep -qx "$old $(sum "$dir/out")" "$dir/written" || echo "$old" >>"$dir/wrong"
    sleep 0.3
  done
}

verify() {
  local object want right=0
  while read -r object want; do
    timeout 30 rados -p "$pool" get "$object" "$dir/out" || exit 1
    [ "$(sum "$dir/out")" = "$want" ] || { echo "$object differs"; exit 1; }
    right=$((right + 1))
  done <"$dir/written"
  echo "$right"
}

"$2"
