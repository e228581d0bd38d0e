# The tree is changed 60 times while TCP passes. What is queued stays or is counted as dropped.
# Seconds: 180
network
tree 'sqf limit=200'
iperf3 -c $there -t 8 -P 4 -i 0 -f m > /run/iperf &
client=$!
sleep 1
round=0
while [ $round -lt 12 ]; do
    for spec in 'tbf rate=20mbit burst=5kb / sqf limit=30' qfq 'tbf rate=80mbit burst=5kb / msfc' cake \
        'tbf rate=10mbit burst=5kb / pdrr'; do
        fairgate-qdisc change va "$spec"
        usleep 50000
    done
    round=$((round + 1))
done
wait $client
figure "$(awk '/SUM.*receiver/ { print $6, $7 }' /run/iperf) through 60 changes; \
$(shown dropped_packets) dropped, $(shown flushed_packets) flushed"
pings 5
