#!/usr/bin/env bash
# A client of storage. client.sh DIR STORE PLACE write: writes one object after the other until DIR/stop is there; STORE is "rados"
# with a pool as PLACE, or "mount" with a directory. What was acknowledged is listed in DIR/written with its checksum. After each
# write an older object is read back: one that differs is listed in DIR/wrong. DIR/failed lists the attempts that failed and were
# repeated. client.sh DIR STORE PLACE verify [MOST]: reads all of them back, or of more than MOST the last and others, and prints how many were right.
set -u
dir=$1 store=$2 place=$3 verb=$4 most=${5:-}

# A command that hangs is ended and tried again: Ceph repeats an operation until it is done, however long its peers are away.
put() {
  case $store in
    rados) timeout 30 rados -p "$place" put "$1" "$2" ;;
    mount) timeout 30 dd if="$2" of="$place/$1" bs=64k conv=fsync status=none ;;
  esac
}

get() {
  case $store in
    rados) timeout 30 rados -p "$place" get "$1" "$2" ;;
    mount) timeout 30 cp "$place/$1" "$2" ;;
  esac
}

persist() {
  until "$@" 2>>"$dir/log"; do
    echo "$1 $2" >>"$dir/failed"
    [ -e "$dir/stop" ] && return 1
    sleep 0.2
  done
}

sum() { sha256sum "$1" | cut -d' ' -f1; }

write() {
  local n old
  n=$(cat "$dir/written" 2>/dev/null | wc -l) # it may have been ended by a loss of power, and goes on
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
  cp "$dir/written" "$dir/list"
  if [ -n "$most" ] && [ "$(wc -l <"$dir/list")" -gt "$most" ]; then
    { tail -n $((most / 2)) "$dir/list"; head -n -$((most / 2)) "$dir/list" | shuf -n $((most / 2)); } >"$dir/some"
    mv "$dir/some" "$dir/list"
  fi
  while read -r object want; do
    get "$object" "$dir/check" || exit 1 # beside a client that writes on
    [ "$(sum "$dir/check")" = "$want" ] || { echo "$object differs"; exit 1; }
    right=$((right + 1))
  done <"$dir/list"
  echo "$right"
}

"$verb"
