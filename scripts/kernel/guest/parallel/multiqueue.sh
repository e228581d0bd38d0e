# Under mq, with a discipline for each queue of the device.
# Seconds: 180
network 2
tc qdisc add dev va root handle 1: mq
tc qdisc replace dev va parent 1:1 handle 10: fairgate
tc qdisc replace dev va parent 1:2 handle 20: fairgate
begin_count
figure "$(tcp 8M -P 6) Mbit/s each way"
pings 5
[ "$(fairgate-qdisc show va | wc -l)" -eq 2 ] || fail 'not two disciplines'
