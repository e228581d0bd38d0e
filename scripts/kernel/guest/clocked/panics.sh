# A panic of the Rust code in each of its entries is caught. Packets pass through a plain fifo from then on,
# until the discipline is replaced; what was queued is not lost.
# Seconds: 120
panics=provoked
network

# provoke ENTRY: the next call of ENTRY panics.
provoke() {
    caught=$(parameter panics)
    mark panic
    echo "$1" > /sys/module/sch_fairgate/parameters/panic_in
}
was_caught() {
    [ "$(parameter panics)" -eq $((caught + 1)) ] || fail "$1: $(parameter panics) panics are counted"
    [ -z "$(parameter panic_in)" ] || fail "$1: it did not fire"
    kernel_log panic | grep -q 'fairgate.*panic.*rs:[0-9]' || fail "$1: the log does not name file and line"
}
# The discipline goes on as a fifo: all of its packets pass, bytes are conserved; then it is replaced.
goes_on() {
    [ "$(shown panicked)" -eq 1 ] || fail "$1: it does not say that it panicked"
    pings 5
    tcp 256K > /dev/null
    holds "$(shown passed) > 0" "$1: packets through the fifo"
    balanced
    fairgate-qdisc change va 'sqf limit=200'
    [ "$(shown panicked)" -eq 0 ] || fail "$1: a new tree says that it panicked"
    pings 5
    balanced
    figure "$1: caught"
}

for entry in enqueue enqueued dequeue; do
    tree 'tbf rate=20mbit burst=20kb / sqf limit=200'
    pings 5
    provoke $entry
    # The packet of the panic is queued or dropped, and no other is lost.
    ping -c 5 -i 0.02 -W 1 -q $there > /run/ping || true
    answered=$(awk '/received/ { print $4 }' /run/ping)
    holds "$answered >= 4" "$entry: answered of 5 pings"
    was_caught $entry
    goes_on $entry
done

# With packets queued: they leave.
queued() { [ "$(shown backlog_packets)" -gt 5 ]; }
tree 'tbf rate=200kbit burst=5kb / sqf limit=200'
iperf3 -c $there -u -b 4M -n 100K -l 1000 -i 0 > /dev/null &
client=$!
until_true 10 queued
provoke dequeue
wait $client || true
was_caught 'dequeue with packets'
goes_on 'dequeue with packets'

provoke build
must_fail . fairgate-qdisc change va 'tbf rate=20mbit burst=20kb / qfq'
was_caught build
[ "$(shown panicked)" -eq 0 ] || fail 'build: the tree that was there says that it panicked'
pings 3
balanced
figure 'build: refused'

tree 'drr'
provoke statistics
tc -s qdisc show dev va
was_caught statistics
goes_on statistics

tree @/examples/isp.toml
provoke dump
tc -s class show dev va > /dev/null
was_caught dump
goes_on dump

tree sqf
provoke change
must_fail . fairgate-qdisc change va qfq
was_caught change
goes_on change

tree sqf
provoke flush
ip link set va down
ip link set va up
ip neigh replace $there lladdr "$(in_b cat /sys/class/net/vb/address)" dev va
was_caught flush
goes_on flush

tree sqf
provoke delete
tc qdisc del dev va root
was_caught delete
fairgate-qdisc add va sqf
begin_count
pings 3
figure 'delete: caught'
