# Every discipline: TCP both ways, ping, and no loss at light load.
# Seconds: 240
network
light=2M
! is_debug || light=200K
count=0
while read -r spec; do
    case $spec in '' | '#'*) continue ;; esac
    tree "$spec"
    set -- $(udp $light 1 2)
    [ "$2" -eq 0 ] || fail "$2 of $3 datagrams are lost at twice $light: $spec"
    [ "$(shown dropped_packets)" -eq 0 ] || fail "it dropped at light load: $spec"
    set -- $(tcp 1M -P 2)
    pings 5
    echo "$spec: $1 and $2 Mbit/s"
    count=$((count + 1))
done < /disciplines
figure "$count disciplines carry TCP both ways and ping, and lose nothing of twice $light"
