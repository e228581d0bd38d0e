#!/bin/sh
# The program of the stand-ins is the host's. It must not be changed, nor get another mode, owner or time.
program=/run/fairgate-record/fairgate
chmod 4777 $program 2>/dev/null && echo "THROUGH: chmod"
chown 65534 $program 2>/dev/null && echo "THROUGH: chown"
touch -d 2001-01-01 /sbin/tc 2>/dev/null && echo "THROUGH: touch"
(: >> $program) 2>/dev/null && echo "THROUGH: open for writing"
mv $program $program.old 2>/dev/null && echo "THROUGH: mv"
tc qdisc add dev e root pfifo limit 3
