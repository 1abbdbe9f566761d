#!/usr/bin/env bash
# A client of storage. client.sh DIR STORE PLACE write: writes one object after the other until DIR/stop is there; STORE is "rados"
# with a pool as PLACE, or "mount" with a directory. What was acknowledged is listed in DIR/written with its checksum. After each
# write an older object is read back: one that differs is listed in DIR/wrong. DIR/failed lists the attempts that failed and were
# repeated. client.sh DIR STORE PLACE verify [MOST]: reads all of them back, or of more than MOST the last and others, and prints how many were right.
# They are read in one process: by one of 'rados' for each, hundreds take minutes.
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

# sums prints the objects that standard input names, each with its checksum, or what kept it from being read.
reader='
import hashlib, rados, sys
with rados.Rados(conffile="", conf={"client_mount_timeout": "30", "rados_osd_op_timeout": "30"}) as cluster, cluster.open_ioctx(sys.argv[1]) as pool:
    for line in sys.stdin:
        name = line.split()[0]
        try:
            print(name, hashlib.sha256(pool.read(name, 1 << 20)).hexdigest())
        except rados.Error as e:
            print(name, e)
            break
'

sums() {
  case $store in
    rados) /usr/bin/python3 -c "$reader" "$place" ;; # the one that Debian has librados for
    mount) (cd "$place" && cut -d' ' -f1 | timeout 100 xargs sha256sum 2>&1 | awk '/^sha256sum:/ {print; next} {print $2, $1}') ;;
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
  n=0
  [ ! -e "$dir/written" ] || n=$(wc -l <"$dir/written") # it may have been ended by a loss of power, and goes on
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
  cp "$dir/written" "$dir/list"
  if [ -n "$most" ] && [ "$(wc -l <"$dir/list")" -gt "$most" ]; then
    { tail -n $((most / 2)) "$dir/list"; head -n -$((most / 2)) "$dir/list" | shuf -n $((most / 2)); } >"$dir/some"
    mv "$dir/some" "$dir/list"
  fi
  sums <"$dir/list" >"$dir/sums" # beside a client that writes on
  diff "$dir/list" "$dir/sums" >"$dir/differs" || { head -n 20 "$dir/differs"; exit 1; }
  wc -l <"$dir/sums"
}

"$verb"
