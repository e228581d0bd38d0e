#!/bin/sh
# Files of the host that can't be copied on write are read-only, and stay so. $1 is a folder with a mount in
# it.
for file in "$1"/mounted/victim.txt "$1"/mounted "$1"/victim.txt "$1" "$0" /etc/passwd /etc /; do
    mount -o remount,rw,bind "$file" 2>/dev/null && echo "THROUGH: remount of $file"
    mount -o remount,rw "$file" 2>/dev/null && echo "THROUGH: remount of $file"
    { echo written >> "$file"; } 2>/dev/null
done
cut -d ' ' -f 5 /proc/self/mountinfo | while read -r place; do
    mount -o remount,rw,bind "$place" 2>/dev/null && echo "THROUGH: remount of $place"
    umount "$place" 2>/dev/null && echo "THROUGH: umount of $place"
    umount -l "$place" 2>/dev/null && echo "THROUGH: umount of $place"
done
mkdir -p /tmp/over
mount --bind / /tmp/over 2>/dev/null && echo "THROUGH: bind"
mount --rbind "$1" /tmp/over 2>/dev/null && echo "THROUGH: rbind"
mount -t tmpfs none /tmp/over 2>/dev/null && echo "THROUGH: tmpfs"
mount -t overlay -o lowerdir=/etc,upperdir=/tmp/over,workdir=/tmp none /tmp/over 2>/dev/null &&
    echo "THROUGH: overlay"
tc qdisc add dev e root pfifo limit 3
