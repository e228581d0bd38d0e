# A size table of tc counts: each packet is 100 bytes longer for our discipline than it is.
network
tc qdisc add dev va root stab overhead 100 fairgate
before=$(arrived)
pings 20
into=$(($(arrived) - before + 20 * 100))
out=$(sent_and_waiting)
[ "$into" -eq "${out% *}" ] || fail "$into bytes in with the overhead, ${out% *} out"
[ "$(shown dequeued_bytes)" -eq "$into" ] || fail "the tree counts $(shown dequeued_bytes) bytes"
tc qdisc del dev va root
