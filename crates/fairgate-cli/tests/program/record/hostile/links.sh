#!/bin/sh
# Links to files of the host, and files in places that the stages use.
/sbin/tc qdisc add dev e root pfifo limit 3
ln -s /etc/passwd /tmp/link && (echo written >> /tmp/link) 2>/dev/null
ln "$0" /tmp/hard 2>/dev/null
rm -rf /run/fairgate-record/bin /run/fairgate-record/machine.json 2>/dev/null
mkdir -p /run/fairgate-record/machine.json 2>/dev/null
cd / && for folder in ../../.. /proc/self/root /proc/1/root /proc/self/cwd/..; do
    [ -e $folder/run/layers ] && echo "THROUGH: $folder"
    [ -e $folder/run/root ] && echo "THROUGH: $folder"
done
ls /run | grep -v '^fairgate-record$' | sed 's/^/THROUGH: \/run has /'
