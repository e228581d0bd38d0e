# `fairgate run --kernel` between the two interfaces of a router: the tree of a direction is at the interface
# that sends, and only the directions that have one are touched.
# Seconds: 200
network
behind_b 10.8.0.2/24
in_b ip addr add 10.8.0.1/24 dev vm
in_b sh -c 'echo 1 > /proc/sys/net/ipv4/ip_forward'
ip -n c route add default via 10.8.0.1
ip route add 10.8.0.0/24 via $there

cat > /run/home.toml << 'END'
[run]
left = "vb"
right = "vm"
left_to_right = "towards"
right_to_left = "back"

[queue]
towards = { discipline = "tbf", rate = "20mbit", burst = "20kb", inner = { discipline = "fq_codel" } }
back = { discipline = "tbf", rate = "6mbit", burst = "20kb", inner = { discipline = "sqf" } }
END
. /a_run.sh

# through [OPTION...]: Mbit/s of TCP between the ends of the router.
through() {
    iperf3 -c 10.8.0.2 -t 3 -i 0 -f m "$@" > /run/iperf
    awk '/receiver/ { for (i = 1; i <= NF; i++) if ($i == "Mbits/sec") print $(i - 1) }' /run/iperf
}
# trees INTERFACE: how many of ours it has.
trees() {
    in_b tc qdisc show dev "$1" | grep -c '^qdisc fairgate' || true
}

# Without forwarding no packet comes to a tree.
sed 's/^\[run\]/&\nbackend = "kernel"/' /run/home.toml > /run/kernel.toml
in_b sh -c 'echo 0 > /proc/sys/net/ipv4/ip_forward'
must_fail 'no router that way' in_b fairgate doctor /run/kernel.toml
in_b sh -c 'echo 1 > /proc/sys/net/ipv4/ip_forward'
in_b fairgate doctor /run/kernel.toml > /run/said || true
[ "$(grep -c 'forwards that way' /run/said)" -eq 2 ] || { cat /run/said; fail 'the doctor sees no router'; }

in_b tc qdisc add dev vm root handle 7: pfifo
must_fail 'vm. has a qdisc already' in_b fairgate run --kernel --socket $socket /run/home.toml
in_b tc qdisc del dev vm root
start
[ "$(trees vb) $(trees vm)" = '1 1' ] || fail 'not one tree at each interface'
ping -c 10 -i 0.02 -W 2 -q 10.8.0.2 > /run/ping || fail 'a ping was not answered'
rates="$(through) $(through -R)"
figure "Mbit/s of TCP through a router shaped to 20 and 6: $rates"
paced "${rates% *} > 16 && ${rates% *} < 20" 'Mbit/s to the right'
paced "${rates#* } > 4.8 && ${rates#* } < 6" 'Mbit/s to the left'
asked doctor --for 1s > /run/said || true
[ "$(grep -c 'forwards that way' /run/said)" -eq 2 ] || { cat /run/said; fail 'the doctor sees no router'; }
has '"from":"vb","to":"vm"' '"from":"vm","to":"vb"' '"discipline":"fq_codel"' '"discipline":"sqf"'
holds "$(sent 1) > 500 && $(sent 2) > 500" 'packets in each direction'
sed -i 's/20mbit/4mbit/' /run/home.toml
asked reload
rate=$(through)
figure "Mbit/s after a change to 4: $rate"
paced "$rate > 3 && $rate < 4.1" 'Mbit/s after a change'
ends

# A direction without a tree stays as it is.
sed -i '/right_to_left/d' /run/home.toml
start
[ "$(trees vb) $(trees vm)" = '0 1' ] || fail 'a direction without a tree has one'
kill -KILL $pid
wait $pid || true
[ "$(trees vb) $(trees vm)" = '0 1' ] || fail 'a killed run takes its tree along'
in_b fairgate run --kernel --detach /run/home.toml > /run/said
grep -q 'At vm, .*fairgate stop vm' /run/said || { cat /run/said; fail 'it does not say how to end that'; }
! grep -q 'stop vb' /run/said || fail 'it names an interface that it does not use'
ping -c 5 -i 0.02 -W 2 -q 10.8.0.2 > /run/ping || fail 'a ping was not answered'
in_b fairgate stop vm
left_behind
