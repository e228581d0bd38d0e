#!/bin/sh
# Settings of the kernel. A core_pattern is a program that runs as root outside. Each one would get the value
# that it has.
write() {
    value=$(cat "$1" 2>/dev/null) && { echo "$value" > "$1"; } 2>/dev/null && echo "THROUGH: $1"
}
everything() {
    for file in /proc/sys/kernel/* /proc/sys/vm/* /proc/sys/fs/* /proc/irq/default_smp_affinity \
        /sys/devices/system/cpu/cpu*/online /sys/devices/system/cpu/smt/control /proc/self/oom_score_adj; do
        write "$file"
    done
    { echo h > /proc/sysrq-trigger; } 2>/dev/null && echo "THROUGH: sysrq"
}
everything
for place in /proc /proc/sys /sys /sys/devices/system; do
    mount -o remount,rw,bind $place 2>/dev/null && echo "THROUGH: remount of $place"
    mount -o remount,rw $place 2>/dev/null && echo "THROUGH: remount of $place"
done
mkdir /tmp/fresh
mount -t proc proc /tmp/fresh 2>/dev/null && echo "THROUGH: a new proc"
mount -t sysfs sysfs /tmp/fresh 2>/dev/null && echo "THROUGH: a new sysfs"
everything
hostname fairgate-was-here 2>/dev/null && echo "THROUGH: hostname"
date -s 2001-01-01 >/dev/null 2>&1 && echo "THROUGH: the clock"
tc qdisc add dev e root pfifo limit 3
