# What tests are written with. A test is a file of a folder, which says in what machine it runs:
#   clocked    one processor, and a clock that counts instructions: times and rates do not depend on how busy
#              the machine is that emulates it, and waiting costs nothing
#   parallel   two processors that run at the same time, for races; no rate is asserted
#   costs      like clocked, with an instruction for each nanosecond
# Its head says what it shows, and `# Seconds:` after how many it has failed (60 without). It ends at the
# first command that fails. After it, whatever it left is checked: bytes are conserved, and the kernel
# complained of nothing.
#
# The network is one veth: `va` here, with the discipline that is tested, and `vb` in the namespace `b`.

here=10.9.0.1
there=10.9.0.2

# Ends the test.
fail() {
    fairgate-qdisc show va || true
    echo "failed: $*"
    exit 1
}

# A line of the report.
figure() {
    echo "$*" | tee -a /run/figures
}

in_b() {
    ip netns exec b "$@"
}

# holds 'VALUE TEST VALUE' WHAT...: like holds '3.5 > 2' 'the rate'; numbers may have fractions.
holds() {
    local comparison=$1
    shift
    awk "BEGIN { exit !($comparison) }" || fail "$*: $comparison does not hold"
}

# Whether the kernel is that of scripts/kernel/debug. It looks for mistakes, and is too slow for most rates.
is_debug() {
    uname -r | grep -q -- '-debug$'
}

# paced 'VALUE TEST VALUE' WHAT...: the same of what follows from a rate or from the size of the kernel's
# code, which a debug kernel does not have.
paced() {
    if is_debug; then
        figure "not judged: $*"
    else
        holds "$@"
    fi
}

# must_fail PATTERN COMMAND...: the command fails and says what matches PATTERN.
must_fail() {
    local pattern=$1 code=0
    shift
    "$@" > /run/said 2>&1 || code=$?
    cat /run/said
    [ "$code" -ne 0 ] || fail "this should have been refused: $*"
    grep -qE "$pattern" /run/said || fail "the error does not say '$pattern': $*"
}

# until_true SECONDS COMMAND...: waits until the command succeeds.
until_true() {
    local tries=$(($1 * 20))
    shift
    while ! "$@" > /run/tried 2>&1; do
        tries=$((tries - 1))
        [ "$tries" -gt 0 ] || { cat /run/tried; fail "it did not become true: $*"; }
        usleep 50000
    done
}

load_module() {
    [ -d /sys/module/sch_fairgate ] || insmod /sch_fairgate.ko
}

parameter() {
    cat "/sys/module/sch_fairgate/parameters/$1"
}

# network [QUEUES]: both ends, and a server of iperf3 there.
network() {
    local queues=${1:-1}
    load_module
    modprobe veth
    ip netns add b
    ip link add va numtxqueues "$queues" numrxqueues "$queues" type veth \
        peer name vb netns b numtxqueues "$queues" numrxqueues "$queues"
    # Nothing but the tests' packets passes.
    echo 1 > /proc/sys/net/ipv6/conf/va/disable_ipv6
    in_b sh -c 'echo 1 > /proc/sys/net/ipv6/conf/vb/disable_ipv6'
    ip addr add $here/24 dev va
    ip link set va up
    ip -n b addr add $there/24 dev vb
    ip -n b link set vb up
    ip neigh replace $there lladdr "$(in_b cat /sys/class/net/vb/address)" dev va
    ip -n b neigh replace $here lladdr "$(cat /sys/class/net/va/address)" dev vb
    # The kernel itself counts what arrives before a discipline.
    tc qdisc add dev va clsact
    tc filter add dev va egress matchall action pass
    begin_count
    in_b iperf3 -s -D
    until_true 5 in_b sh -c 'netstat -ltn | grep -q :5201'
}

# behind_b ADDRESS: the namespace `c` behind `b`, which reaches it by `vm`: its interface `vz` with this
# address, and a server of iperf3 there.
behind_b() {
    ip netns add c
    ip link add vm netns b type veth peer name vz netns c
    ip -n b link set vm up
    ip -n c addr add "$1" dev vz
    ip -n c link set vz up
    ip netns exec c iperf3 -s -D
    until_true 5 ip netns exec c sh -c 'netstat -ltn | grep -q :5201'
}

# tree TREE: replaces the discipline of `va` by that tree. Counting begins anew.
tree() {
    balanced
    tc qdisc del dev va root 2> /dev/null || true
    fairgate-qdisc add va "$@"
    begin_count
}

# shown KEY: the counter of all of our disciplines of `va` together.
shown() {
    fairgate-qdisc show va | tr ' ' '\n' |
        awk -F = -v key="$1" '$1 == key { sum += $2 } END { print sum + 0 }'
}

# Bytes that arrived before the discipline.
arrived() {
    tc -s filter show dev va egress | awk '/Sent/ { print $2; exit }'
}

# Bytes that our disciplines of `va` sent and that wait in them, as the kernel counts them.
sent_and_waiting() {
    tc -s qdisc show dev va | awk '
        $1 == "qdisc" { ours = $2 == "fairgate" }
        ours && $1 == "Sent" { sent += $2 }
        ours && $1 == "backlog" { waiting = $2 == "0b" ? waiting : waiting " " $2 }
        END { printf "%d %s", sent, waiting ? waiting : 0 }'
}

# A packet of an earlier test may have passed a discipline that is attached already.
begin_count() {
    local sent
    sent=$(sent_and_waiting)
    echo $(($(arrived) - ${sent% *})) > /run/before
}

# Nothing waits and nothing moves.
is_idle() {
    local first
    first="$(arrived) $(sent_and_waiting)"
    usleep 30000
    [ "$first" = "$(arrived) $(sent_and_waiting)" ] && [ "${first##* }" = 0 ]
}

# Every byte that arrived since the tree was made left, was dropped, or waits.
balanced() {
    [ -e /sys/class/net/va ] || return 0
    tc qdisc show dev va | grep -q '^qdisc fairgate' || return 0
    until_true 10 is_idle
    local sent
    sent=$(sent_and_waiting)
    fairgate-qdisc show va > /run/shown
    tr ' ' '\n' < /run/shown | awk -F = -v into=$(($(arrived) - $(cat /run/before))) -v sent="${sent% *}" '
        { sum[$1] += $2 }
        END {
            out = sent + sum["dropped_bytes"] + sum["flushed_bytes"] + sum["refused_bytes"]
            if (into != out) {
                print into " bytes arrived, " out " are sent, dropped, flushed or refused, and none wait"
                exit 1
            }
            for (i = split("packets bytes", units, " "); i > 0; i--) {
                u = "_" units[i]
                out = sum["dequeued" u] + sum["dropped" u] + sum["flushed" u] + sum["backlog" u]
                if (sum["enqueued" u] != out) {
                    print "the tree counts " sum["enqueued" u] " " units[i] " in and " out " out"
                    exit 1
                }
            }
        }' || { cat /run/shown; tc -s qdisc show dev va; fail 'not all bytes are accounted for'; }
}

# mark WORD: kernel_log WORD prints what the kernel said since then.
mark() {
    echo "fairgate-test: $1" > /dev/kmsg
}
kernel_log() {
    dmesg | awk -v mark="fairgate-test: $1" '
        index($0, mark) { lines = ""; next }
        { lines = lines $0 "\n" }
        END { printf "%s", lines }'
}

# The kernel complained of nothing since the test began. A test that provokes panics sets `panics`.
quiet_log() {
    kernel_log begin |
        grep -E 'WARNING|BUG|Oops|Call Trace|general protection|stall|hung|leak|fairgate.*panic' |
        if [ -n "$panics" ]; then grep -v 'fairgate.*panic'; else cat; fi > /run/complaints || true
    [ ! -s /run/complaints ] || fail 'the kernel complained'
}

# Takes away what a test made. Then nothing of ours may be left.
clean() {
    killall -q -KILL iperf3 ping || true
    ip link del va 2> /dev/null || true
    ip link del d0 2> /dev/null || true
    ip netns del b 2> /dev/null || true
    ip netns del c 2> /dev/null || true
    [ -d /sys/module/sch_fairgate ] || return 0
    until_true 10 unused
}
unused() {
    [ "$(cat /sys/module/sch_fairgate/refcnt)" -eq 0 ] && [ "$(parameter allocated)" -eq 0 ]
}

# pings COUNT [OPTION...]: each one is answered.
pings() {
    local count=$1
    shift
    ping -c "$count" -i 0.02 -W 2 -q "$@" $there > /run/ping ||
        { cat /run/ping; fail 'a ping was not answered'; }
}

# tcp BYTES [OPTION...]: so many bytes each way; prints Mbit/s sent and received.
tcp() {
    local bytes=$1
    shift
    iperf3 -c $there -n "$bytes" --bidir -i 0 -f m "$@" > /run/iperf ||
        { cat /run/iperf; fail 'TCP failed'; }
    rate TX-C
    rate RX-C
}
rate() {
    awk -v role="$1" 'index($0, role) && /receiver/ {
        for (i = 1; i <= NF; i++) if ($i == "Mbits/sec") { if (/SUM/) sum = $(i - 1); else all += $(i - 1) }
    } END { printf "%.1f ", sum ? sum : all }' /run/iperf
}

# udp RATE SECONDS FLOWS [OPTION...]: datagrams of 1400 bytes at RATE for each flow; prints Mbit/s received,
# lost and sent datagrams.
udp() {
    local wanted=$1 seconds=$2 flows=$3
    shift 3
    iperf3 -c $there -u -b "$wanted" -t "$seconds" -P "$flows" -l 1400 -i 0 -f m "$@" > /run/iperf ||
        { cat /run/iperf; fail 'UDP failed'; }
    awk -v flows="$flows" '/receiver/ && (flows == 1 || /SUM/) {
        for (i = 1; i <= NF; i++) {
            if ($i == "Mbits/sec") rate = $(i - 1)
            if ($i ~ "^[0-9]+/[0-9]+$") split($i, count, "/")
        }
    } END { print rate, count[1], count[2] }' /run/iperf
}
