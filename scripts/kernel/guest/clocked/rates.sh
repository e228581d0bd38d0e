# A shaper that is offered twice its rate sends at its rate.
# Seconds: 90
network
while read -r megabits spec; do
    tree "$spec"
    set -- $(udp "$((megabits * 2 / 4))M" 3 4)
    # iperf3 counts payloads: 1400 of 1442 bytes. The backlog at the end arrives within its time or not.
    speed=$(awk "BEGIN { print $1 * 1442 / 1400 / $megabits }")
    paced "$speed > 0.93 && $speed < 1.05" "$1 Mbit/s of payload through $spec"
    figure "$spec: $speed of its rate"
    balanced
done <<'TREES'
20 tbf rate=20mbit burst=5kb / sqf limit=100
20 tbf rate=20mbit burst=20kb / fifo limit=50
8 tbf rate=8mbit burst=3kb / fq_codel
30 leaky_bucket rate=30mbit bucket=10kb
20 cake bandwidth=20mbit
TREES
