# Instructions of a dequeue and an enqueue: the kernel's disciplines and ours, with 64 flows and 256 packets
# queued, and with one flow and 64 packets. The clock of the guest counts instructions.
# Seconds: 600
load_module
ip link add d0 type dummy
ip link set d0 up

# cost NAME FLOWS BACKLOG: prints the instructions of a pair.
cost() {
    dmesg -c > /dev/null
    insmod /qdisc_bench.ko name="$1" flows="$2" backlog="$3" 2> /dev/null || true
    dmesg > /run/bench
    local clock
    clock=$(awk '/qdisc_bench: clock/ { print $NF }' /run/bench)
    holds "$clock > 1990000 && $clock < 2020000" 'nanoseconds of two million instructions'
    awk '/qdisc_bench: / && !/clock/ { sub(/.*qdisc_bench: /, ""); print }' /run/bench | tail -n 1
}

# both SIDE NAME: one line of the report.
both() {
    local many one
    many=$(cost "$2" 64 256)
    one=$(cost "$2" 1 64)
    figure "$(printf '%-9s %-12s %s' "$1" "$2" "64 flows ${many##* }, one flow ${one##* }")"
}

for kind in 'pfifo limit 1000' 'fq_codel' 'fq' 'codel' 'cake unlimited besteffort flows' 'sfq limit 1000 depth 100' \
    'pie' 'fq_pie' 'hhf'; do
    tc qdisc replace dev d0 root $kind
    both kernel "${kind%% *}"
    tc qdisc del dev d0 root
done
for spec in 'fifo limit=1000' fq_codel fq codel cake sfq pie fq_pie hhf drr qfq 'sqf limit=1000' msfc pdrr wf2q_plus; do
    fairgate-qdisc add d0 "$spec"
    both fairgate "${spec%% *}"
    tc qdisc del dev d0 root
done
