#!/bin/busybox sh
# shellcheck shell=dash
# The first process of the machine: it makes the machine ready, runs the script, says how that ended, and switches the machine off.
/bin/busybox mkdir -p /proc /sys /dev /tmp /mnt
/bin/busybox --install -s /bin
export PATH=/bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
while read -r module; do
  insmod "$module" || true # one for another processor; whoever needs it says so
done </modules
ip link set lo up
ip addr add "$(cat /address)/24" dev eth0
ip link set eth0 up
sh -eu /script
echo "vm: the script ended with $?"
poweroff -f
