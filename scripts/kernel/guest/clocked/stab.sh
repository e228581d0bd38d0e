# A size table of tc counts: each packet is 100 bytes longer for our discipline than it is. So is each segment
# of a merged packet that is cut, also by the table of the root above our discipline.
network
tc qdisc add dev va root stab overhead 100 fairgate
before=$(arrived)
pings 20
into=$(($(arrived) - before + 20 * 100))
out=$(sent_and_waiting)
[ "$into" -eq "${out% *}" ] || fail "$into bytes in with the overhead, ${out% *} out"
[ "$(shown dequeued_bytes)" -eq "$into" ] || fail "the tree counts $(shown dequeued_bytes) bytes"
tc qdisc del dev va root
# overheads WHAT: TCP's packets are cut, and each one that left counts with the overhead.
overheads() {
    local sent
    sent=$(cat /sys/class/net/va/statistics/tx_bytes)
    iperf3 -c $there -t 2 -i 0 > /run/iperf
    until_true 10 is_idle
    sent=$(($(cat /sys/class/net/va/statistics/tx_bytes) - sent))
    holds "$(shown cut) > 0" "merged packets that were cut $1"
    holds "$(shown dequeued_bytes) == $sent + 100 * $(shown dequeued_packets)" "bytes that the tree counts $1"
}
tc qdisc add dev va root stab overhead 100 fairgate 'sqf limit=100'
overheads 'at the root'
tc qdisc del dev va root
tc qdisc add dev va root handle 1: stab overhead 100 htb default 1
tc class add dev va parent 1: classid 1:1 htb rate 50mbit
fairgate-qdisc add va:1:1:10 'sqf limit=100'
overheads 'in a leaf'
tc qdisc del dev va root
