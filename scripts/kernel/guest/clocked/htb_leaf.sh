# As leaf of the kernel's htb.
network
tc qdisc add dev va root handle 1: htb default 1
tc class add dev va parent 1: classid 1:1 htb rate 30mbit
fairgate-qdisc add va:1:1:10 'sqf limit=10'
begin_count
iperf3 -c $there -t 3 -P 6 -i 0 -f m > /run/iperf
speed=$(awk '/SUM.*receiver/ { print $6 }' /run/iperf)
paced "$speed > 24 && $speed < 31" 'Mbit/s through 30 Mbit/s'
paced "$(shown dropped_packets) > 0" 'packets that the leaf dropped'
figure "$speed of 30 Mbit/s, $(shown dropped_packets) dropped by the leaf"
