#!/usr/bin/env bash
# A client of a mounted volume. gluster.sh DIR MOUNT write: writes one file after the other until DIR/stop is there. A file that was
# written to the disks is listed in DIR/written with its checksum; after each write an older file is read back, and one that
# differs is listed in DIR/wrong. What fails is listed in DIR/log and tried again. gluster.sh DIR MOUNT verify: reads all of them
# back, and prints how many were right.
set -u
dir=$1 mount=$2

sum() { sha256sum "$1" | cut -d' ' -f1; }

write() {
  local n=0 old
  while [ ! -e "$dir/stop" ]; do
    n=$((n + 1))
    head -c 65536 /dev/urandom >"$dir/in"
    until dd if="$dir/in" of="$mount/f$n" bs=64k conv=fsync 2>>"$dir/log"; do
      [ -e "$dir/stop" ] && return
      sleep 0.5
    done
    echo "f$n $(sum "$dir/in")" >>"$dir/written"
    old=f$((RANDOM % n + 1))
    cp "$mount/$old" "$dir/out" 2>>"$dir/log" && ! grep -qx "$old $(sum "$dir/out")" "$dir/written" && echo "$old" >>"$dir/wrong"
    sleep 0.2
  done
}

verify() {
  local file want right=0
  while read -r file want; do
    [ "$(sum "$mount/$file")" = "$want" ] || { echo "$file differs"; exit 1; }
    right=$((right + 1))
  done <"$dir/written"
  echo "$right"
}

"$3"
