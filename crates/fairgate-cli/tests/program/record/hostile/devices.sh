#!/bin/sh
# Devices: no more than four, and none of them gets another mode or owner. No new ones can be made.
for device in null zero full urandom; do
    chmod 666 /dev/$device 2>/dev/null && echo "THROUGH: chmod of $device"
    chown 0 /dev/$device 2>/dev/null && echo "THROUGH: chown of $device"
    touch /dev/$device 2>/dev/null && echo "THROUGH: touch of $device"
done
for device in tty console ptmx pts mem kmsg sda vda loop0 loop-control fuse kvm net/tun mapper rtc0 hwrng; do
    [ -e /dev/$device ] && echo "THROUGH: there is a /dev/$device"
done
mknod /tmp/disk b 254 0 2>/dev/null && echo "THROUGH: a block device"
mknod /dev/memory c 1 1 2>/dev/null && echo "THROUGH: a character device"
# These work.
echo lost > /dev/null && head -c 3 /dev/zero > /dev/null && head -c 3 /dev/random > /dev/null &&
    tc qdisc add dev e root pfifo limit 3
