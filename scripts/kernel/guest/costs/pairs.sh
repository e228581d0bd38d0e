# Instructions of a dequeue and an enqueue: the kernel's disciplines and ours, with 64 flows and 256 packets
# queued, and with one flow and 64 packets. The clock of the guest counts instructions. Packets have the
# kernel's hash of their flow, as those of a socket have. Forwarded ones have none: then the kernel's
# disciplines read their headers, too. Ours always do, because the hash is their own.
# Seconds: 600
load_module
ip link add d0 type dummy
ip link set d0 up

# cost NAME FLOWS BACKLOG [forwarded=1]: prints the instructions of a pair, or `-` if packets were dropped.
cost() {
    mark bench
    insmod /qdisc_bench.ko name="$1" flows="$2" backlog="$3" ${4:+"$4"}
    rmmod qdisc_bench
    kernel_log bench > /run/bench
    local clock
    clock=$(awk '/qdisc_bench: clock/ { print $NF }' /run/bench)
    holds "$clock > 1990000 && $clock < 2020000" 'nanoseconds of two million instructions'
    awk '/qdisc_bench: / && !/clock/ { print $NF ~ /^[0-9]+$/ ? $NF : "-" }' /run/bench
}

# measured SIDE NAME: a line of the report. Ours is compared with the kernel's, if that was measured, with 64
# flows.
measured() {
    local many one forwarded beside=
    many=$(cost "$2" 64 256)
    one=$(cost "$2" 1 64)
    forwarded=$(cost "$2" 64 256 forwarded=1)
    tc qdisc del dev d0 root
    case $1 in
        kernel) echo "$many $forwarded" > "/run/kernel-$2" ;;
        *) [ ! -f "/run/kernel-$2" ] || beside=$(awk -v many="$many" -v forwarded="$forwarded" '
            function part(ours, kernel) { return kernel > 0 ? sprintf("%.2f", ours / kernel) : "-" }
            { print part(many, $1) " and " part(forwarded, $2) " of the kernel" }' "/run/kernel-$2") ;;
    esac
    figure "$(printf '%-8s %-10s 64 flows %5s, forwarded %5s, one flow %4s  %s' "$1" "$2" "$many" \
        "$forwarded" "$one" "$beside")"
}

# Name, the kernel's discipline or `-`, and ours. `cake_hosts` has triple isolation: there a flow has a part
# of the quantum of its host, and may need a turn for each flow of the host before it sends a packet. Here
# all flows are of one host.
while IFS='|' read -r name kernel ours; do
    if [ "$kernel" != - ]; then
        # shellcheck disable=SC2086 # Several words.
        tc qdisc replace dev d0 root $kernel
        measured kernel "$name"
    fi
    fairgate-qdisc add d0 "$ours"
    measured fairgate "$name"
done << 'TABLE'
fifo|pfifo limit 1000|fifo limit=1000
fq_codel|fq_codel|fq_codel
fq|fq|fq
codel|codel|codel
cake|cake unlimited besteffort flows|cake tins=besteffort isolation=flows
cake_hosts|cake unlimited besteffort triple-isolate|cake tins=besteffort
sfq|sfq limit 1000 depth 100|sfq limit=1000
pie|pie|pie
fq_pie|fq_pie|fq_pie
hhf|hhf|hhf
drr|-|drr
qfq|-|qfq
sqf|-|sqf limit=1000
msfc|-|msfc
pdrr|-|pdrr
wf2q_plus|-|wf2q_plus
tbf|-|tbf rate=10gbit burst=10mb / fq_codel
TABLE
