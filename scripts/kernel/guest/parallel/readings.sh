# A run whose packets the kernel forwards is read and changed at the same time, under load: each status adds
# up, which `fairgate status` checks, and has all classes.
# Seconds: 200
network
{
    printf '[run]\ndevice = "va"\negress = "up"\n[queue.up]\ndiscipline = "htb"\ndefault = 1\n'
    for minor in $(seq 1 300); do
        printf '[[queue.up.class]]\nid = %d\nrate = "1mbit"\nceil = "50mbit"\ndiscipline = "fifo"\n' "$minor"
    done
} > /run/many.toml
socket=/run/many.sock
fairgate run --kernel --json --socket $socket /run/many.toml > /run/last 2> /run/said &
pid=$!
until_true 60 fairgate status --json --socket $socket
iperf3 -c $there -u -b 60M -t 20 -P 4 -l 200 -i 0 > /run/iperf 2>&1 &
flood=$!
(
    for round in $(seq 1 6); do
        fairgate class change $((round * 40)) "rate=${round}mbit" --socket $socket || exit 1
    done > /run/changed 2>&1
) &
changes=$!
for round in $(seq 1 8); do
    fairgate status --json --socket $socket > /run/status || fail "there is no status in round $round"
    classes=$(grep -c '"discipline": "fifo"' /run/status)
    # The other direction has no tree, and is shown as a fifo.
    [ "$classes" -eq 301 ] || fail "$classes disciplines that are fifos are in the status"
done
wait $changes || { cat /run/changed; fail 'a change was refused'; }
fairgate status --json --socket $socket | tr -d '\n ' > /run/flat
grep -q '"revision":6,' /run/flat || fail 'not all changes were made'
figure "$(grep -oE '"longest_pause_us":[0-9.]+' /run/flat), with 300 classes"
kill $flood 2> /dev/null || true
kill -TERM $pid
wait $pid || { cat /run/said; fail 'the run has not ended well'; }
