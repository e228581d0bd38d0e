# What tests of `fairgate run --kernel` are written with, besides lib.sh: a run of /run/home.toml in `b`.

socket=/run/home.sock

asked() {
    in_b fairgate "$@" --socket $socket
}
# start [FILE]: starts a run in the background, and waits until it answers. With `plane=` it is in user space.
plane=--kernel
start() {
    ip netns exec b fairgate run $plane --json --socket $socket "${1:-/run/home.toml}" \
        > /run/last 2> /run/said &
    pid=$!
    until_true 60 answers_or_ended
    asked status --json > /run/status || { cat /run/last /run/said; fail 'it does not start'; }
}
answers_or_ended() {
    asked status --json || ! kill -0 $pid
}
# has PATTERN...: the status has all of these.
has() {
    asked status --json > /run/status
    tr -d '\n ' < /run/status > /run/flat
    for pattern; do
        grep -qE "$pattern" /run/flat || { cat /run/flat; fail "the status does not have $pattern"; }
    done
}
# sent DIRECTION: packets that this one, 1 or 2, has sent, in what `has` has read.
sent() {
    grep -oE '"sent":\{"packets":[0-9]+,"bytes":[0-9]+\},"rate_bps"' /run/flat |
        sed -n "$1p" | grep -oE '[0-9]+' | head -n 1
}
# of NODE COUNT: packets of a count of the first discipline in /run/flat that has NODE.
of() {
    sed 's/"discipline"/\n&/g' /run/flat | grep -m1 -e "$1" | grep -oE "\"$2\":\{\"packets\":[0-9]+" |
        head -n 1 | grep -oE '[0-9]+$'
}
# left_behind: nothing of the run is.
left_behind() {
    in_b tc qdisc show > /run/left
    in_b ip link show >> /run/left
    ! grep -E 'fairgate|clsact|fg-in' /run/left || fail 'something is left'
    pings 2
}
# stops: the run ends well.
stops() {
    asked stop > /run/stopped || { cat /run/stopped; fail 'it does not stop'; }
    wait $pid || { cat /run/said; fail 'the run has not ended well'; }
}
# ends: it does, with its last status, and leaves nothing.
ends() {
    stops
    grep -q '"revision"' /run/last || fail 'it does not print its last status'
    left_behind
}
