# The module can't be unloaded while it is used. It can be afterwards, and leaves nothing.
# Seconds: 180
network
tree 'tbf rate=1mbit burst=5kb / sqf'
must_fail . rmmod sch_fairgate
udp 4M 1 2 > /dev/null
tc qdisc del dev va root
ip link del va
ip netns del b
until_true 10 unused
for _ in 1 2 3 4 5; do
    rmmod sch_fairgate
    [ ! -d /sys/module/sch_fairgate ] || fail 'it is still there'
    insmod /sch_fairgate.ko
done
