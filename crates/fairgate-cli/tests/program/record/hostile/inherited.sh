#!/bin/sh
# A descriptor that the caller has left open leads out of the sandbox. It must be closed.
for number in 3 4 5 6 7 8 9; do
    [ -e /proc/self/fd/$number/victim.txt ] && echo "THROUGH: descriptor $number"
    (echo written >> /proc/self/fd/$number/victim.txt) 2>/dev/null && echo "THROUGH: descriptor $number"
done
tc qdisc add dev e root pfifo limit 3
