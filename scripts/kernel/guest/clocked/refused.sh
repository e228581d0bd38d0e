# A tree that cannot be is refused with a reason, and the one that is there stays as it was.
network
tree 'sqf limit=100'
pings 3
before=$(shown enqueued_packets)
must_fail nonsense fairgate-qdisc change va nonsense
must_fail color fairgate-qdisc change va 'sqf color=red'
must_fail limit fairgate-qdisc change va 'sqf limit=0'
must_fail . fairgate-qdisc add lo:9:9 sqf
# The kernel itself refuses what is too deep, and the error names the place in the line.
shaper='tbf rate=1gbit burst=10kb /'
must_fail ':1:225: the kernel refuses .sqf.' \
    fairgate-qdisc change va "$shaper $shaper $shaper $shaper $shaper $shaper $shaper $shaper sqf"
[ "$(shown enqueued_packets)" -eq "$before" ] || fail 'the counters changed'
fairgate-qdisc show va | grep -q 'sqf limit=100' || fail 'it is another tree now'
pings 3
