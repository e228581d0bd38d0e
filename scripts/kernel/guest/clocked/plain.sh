# Plain tc: it takes a discipline without options, shows its counters, and deletes it.
network
tc qdisc add dev va root handle 1: fairgate
begin_count
pings 10
tc -s qdisc show dev va | grep -A 1 '^qdisc fairgate 1: root' | tee /run/tc
holds "$(awk '/Sent/ { print $4 }' /run/tc) >= 10" 'packets that tc shows'
tc -s class show dev va
balanced
tc qdisc del dev va root
pings 1
