# Senders that understand marks are marked and lose nothing.
network
echo 1 > /proc/sys/net/ipv4/tcp_ecn
in_b sh -c 'echo 1 > /proc/sys/net/ipv4/tcp_ecn'
tree 'tbf rate=20mbit burst=5kb / fq_codel'
# Enough connections for a queue: with two, each may have so little queued that there is none.
iperf3 -c $there -t 4 -P 8 -i 0 -f m > /run/iperf
echo 2 > /proc/sys/net/ipv4/tcp_ecn
paced "$(shown marked) > 0" 'marked packets'
[ "$(shown dropped_packets)" -eq 0 ] || fail "$(shown dropped_packets) are dropped"
# The receiver saw them: marks are in the packets.
seen=$(in_b awk '
    /^IpExt:/ && at { print $at }
    /^IpExt:/ && !at { for (i = 1; i <= NF; i++) if ($i == "InCEPkts") at = i }' \
    /proc/net/netstat)
paced "$seen > 0" 'marks that arrived'
figure "$(shown marked) marked, $seen arrived marked, none dropped"
