# Instructions of a dequeue and an enqueue: the kernel's disciplines and ours, with 64 flows and 256 packets
# queued, and with one flow and 64 packets. The clock of the guest counts instructions.
# Seconds: 600
load_module
ip link add d0 type dummy
ip link set d0 up

# cost NAME FLOWS BACKLOG: prints the instructions of a pair.
cost() {
    mark bench
    insmod /qdisc_bench.ko name="$1" flows="$2" backlog="$3"
    rmmod qdisc_bench
    kernel_log bench > /run/bench
    local clock
    clock=$(awk '/qdisc_bench: clock/ { print $NF }' /run/bench)
    holds "$clock > 1990000 && $clock < 2020000" 'nanoseconds of two million instructions'
    awk '/qdisc_bench: / && !/clock/ { sub(/.*qdisc_bench: /, ""); print }' /run/bench
}

# both SIDE NAME: a line of the report; ours beside the kernel's, with 64 flows, if it has that discipline.
both() {
    local many one beside=
    many=$(cost "$2" 64 256)
    many=${many##* }
    one=$(cost "$2" 1 64)
    one=${one##* }
    [ "$1" = fairgate ] || echo "$many" > "/run/kernel-$2"
    [ "$1" = kernel ] ||
        [ ! -f "/run/kernel-$2" ] || beside=$(awk "BEGIN { printf \"%.2f times the kernel's\", \
        $many / $(cat "/run/kernel-$2") }")
    figure "$(printf '%-8s %-9s 64 flows %4s, one flow %4s  %s' "$1" "$2" "$many" "$one" "$beside")"
}

for kind in 'fifo limit 1000' fq_codel fq codel 'cake unlimited besteffort flows' 'sfq limit 1000 depth 100' \
    pie fq_pie hhf; do
    # The kernel's fifo of packets is called pfifo.
    case $kind in fifo*) prefix=p ;; *) prefix= ;; esac
    # shellcheck disable=SC2086 # Several words.
    tc qdisc replace dev d0 root $prefix$kind
    both kernel "${kind%% *}"
    tc qdisc del dev d0 root
done
for spec in 'fifo limit=1000' fq_codel fq codel cake 'sfq limit=1000' pie fq_pie hhf drr qfq \
    'sqf limit=1000' msfc \
    pdrr wf2q_plus 'tbf rate=10gbit burst=10mb / fq_codel'; do
    fairgate-qdisc add d0 "$spec"
    both fairgate "${spec%% *}"
    tc qdisc del dev d0 root
done
