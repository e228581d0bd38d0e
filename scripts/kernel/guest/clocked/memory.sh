# An allocation that fails, each one of a new tree and of a change in turn: no memory, and all is as it was.
# Seconds: 300
network
# A panic because of memory is counted as none.
panics=$(parameter panics)
failing=/sys/module/sch_fairgate/parameters/failing_allocation

# each COMMAND...: lets the first allocation of it fail, then the second, until it succeeds.
each() {
    local number=0 before
    before=$(parameter allocated)
    while true; do
        number=$((number + 1))
        echo $number > $failing
        "$@" > /run/said 2>&1 && break
        [ "$(cat $failing)" -eq 0 ] || { cat /run/said; fail "it fails for another reason: $*"; }
        grep -qi 'no memory\|out of memory\|cannot allocate' /run/said ||
            { cat /run/said; fail "it does not say that there is no memory: $*"; }
        [ "$(parameter allocated)" -eq "$before" ] || fail "memory is lost: $(parameter allocated) of $before"
    done
    echo 0 > $failing
    holds "$number > 5" 'allocations'
    figure "$number allocations of $*"
}

each fairgate-qdisc add va 'tbf rate=50mbit burst=20kb / fq_codel'
begin_count
pings 3
each fairgate-qdisc change va 'tbf rate=50mbit burst=20kb / sqf'
pings 3
each fairgate-qdisc change va \
    'htb default=2 { 1 rate=50mbit; 2 parent=1 rate=20mbit / qfq; 3 parent=1 rate=30mbit / sqf }'
pings 3
tcp 128K > /dev/null
[ "$(shown panicked)" -eq 0 ] || fail 'a failed allocation counts as a panic'
[ "$(parameter panics)" -eq "$panics" ] || fail 'a failed allocation counts as a panic'
