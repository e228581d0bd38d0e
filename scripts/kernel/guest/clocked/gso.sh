# Super-packets are cut where the tree shapes: TCP gets the rate although the bucket is smaller than they are.
# fq_codel gets them whole.
network
tree 'tbf rate=50mbit burst=5kb / fq_codel'
iperf3 -c $there -t 3 -P 2 -i 0 -f m > /run/iperf
speed=$(awk '/SUM.*receiver/ { print $6 }' /run/iperf)
paced "$speed > 40 && $speed < 50" 'Mbit/s through 50 Mbit/s'
holds "$(shown cut) > 0" 'super-packets that were cut'
figure "$speed of 50 Mbit/s, $(shown cut) super-packets cut"
tree fq_codel
tcp 4M > /dev/null
[ "$(shown cut)" -eq 0 ] || fail "fq_codel cut $(shown cut) super-packets"
