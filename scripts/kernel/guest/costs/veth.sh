# What veth passes with the kernel's fq_codel and with ours, and what a datagram costs on its way through a
# bridge: with either of them, and through a run in user space. The clock counts instructions, so a second is
# 10^9 of them, and senders have their part of it. Datagrams are dropped where they arrive. TCP is measured
# with super-packets only: without them it depends more on when its receiver wakes up, on one processor.
# Seconds: 900
network
for name in llc stp bridge; do modprobe $name; done

# drops NAMESPACE INTERFACE: drops datagrams of the length of those of `datagrams` as soon as they arrive.
drops() {
    tc -n "$1" qdisc add dev "$2" clsact
    tc -n "$1" filter add dev "$2" ingress protocol ip u32 match u16 1428 0xffff at 2 action drop
}
# datagrams NAMESPACE INTERFACE ADDRESS: how many arrive there in a second, of a sender that never rests.
datagrams() {
    local statistics=/sys/class/net/$2/statistics/rx_packets before
    before=$(ip netns exec "$1" cat "$statistics")
    iperf3 -c "$3" -u -b 0 -n 64M -l 1400 -i 0 -f m > /run/iperf || { cat /run/iperf; fail 'UDP failed'; }
    awk -v packets=$(($(ip netns exec "$1" cat "$statistics") - before)) '
        /sender/ { for (i = 1; i <= NF; i++) if ($i == "sec") { split($(i - 1), span, "-"); s = span[2] } }
        END { printf "%d", packets / s }' /run/iperf
}

# tcp_there: Mbit/s of TCP, after the time in which its window grows.
tcp_there() {
    iperf3 -c $there -n 64M -O 1 -i 0 -f m > /run/iperf || { cat /run/iperf; fail 'TCP failed'; }
    awk '/receiver/ { for (i = 1; i <= NF; i++) if ($i == "Mbits/sec") print $(i - 1) }' /run/iperf
}
drops b vb
tc qdisc add dev va root fq_codel
kernel="$(tcp_there) $(datagrams b vb $there)"
tree fq_codel
ours="$(tcp_there) $(datagrams b vb $there)"
figure "TCP, Mbit/s, and datagrams a second: $ours through our fq_codel, $kernel through the kernel's"
holds "${ours% *} >= 0.9 * ${kernel% *}" 'the rate of TCP, with a tenth less than the kernel has'
# While the kernel's own is empty, packets pass it by.
holds "${ours#* } >= 0.85 * ${kernel#* }" 'datagrams, with 15 % less than the kernel has'
balanced
tc qdisc del dev va root

# From here to `c`, through `b`, which has no address any more.
ip -n b addr flush dev vb
tc -n b qdisc del dev vb clsact
behind_b 10.9.0.3/24
in_b sh -c 'echo 1 > /proc/sys/net/ipv6/conf/vm/disable_ipv6'
ip netns exec c sh -c 'echo 1 > /proc/sys/net/ipv6/conf/vz/disable_ipv6'
drops c vz
cat > /run/home.toml << 'END'
[run]
left = "vb"
right = "vm"
left_to_right = "tree"
right_to_left = "tree"

[queue]
tree = { discipline = "fq_codel" }
END
. /a_run.sh

# each: ns for a datagram from end to end.
each() {
    echo $((1000000000 / $(datagrams c vz 10.9.0.3)))
}
# used: processor time of all threads of the run, ns.
used() {
    cat /proc/$pid/task/*/schedstat | awk '{ sum += $1 } END { printf "%.0f", sum }'
}

in_b ip link add br0 type bridge
in_b ip link set vb master br0
in_b ip link set vm master br0
in_b ip link set br0 up
ping -c 3 -i 0.02 -W 2 -q 10.9.0.3 > /run/ping || fail 'the bridge forwards nothing'
bridge=$(each)
in_b tc qdisc add dev vm root fq_codel
kernel=$(each)
in_b tc qdisc del dev vm root
start
ours=$(each)
has '"discipline":"fq_codel"'
holds "$(sent 1) > 40000" 'packets that our tree sent'
stops
in_b ip link del br0
plane=
start
began=$(used)
user=$(each)
threads=$(($(used) - began))
has '"discipline":"fq_codel"'
holds "$(sent 1) > 40000" 'packets that our tree sent'
threads=$((threads / $(sent 1)))
stops
figure "a datagram from end to end, ns: $bridge through a bridge, $kernel with the kernel's, $ours with" \
    "ours, $user through a run in user space, of which $threads are its threads'"
holds "($ours - $bridge) * 5 <= $threads" 'our qdisc, beside the threads of a run in user space'
