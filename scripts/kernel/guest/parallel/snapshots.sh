# Counters that are read under load fit together in every answer: what came in is out, dropped or queued.
# Seconds: 180
network
tree 'tbf rate=50mbit burst=20kb / fq_codel'
iperf3 -c $there -t 6 -P 4 --bidir -i 0 > /dev/null &
client=$!
answers=0
while kill -0 $client 2> /dev/null; do
    tc -s class show dev va > /dev/null
    tc -s qdisc show dev va > /dev/null
    fairgate-qdisc show va | tr ' ' '\n' | awk -F = '
        { value[$1] = $2 }
        END {
            n = split("packets bytes", units, " ")
            for (i = 1; i <= n; i++) {
                u = "_" units[i]
                out = value["dequeued" u] + value["dropped" u] + value["flushed" u] + value["backlog" u]
                if (value["enqueued" u] != out) {
                    print units[i], value["enqueued" u], "in,", out, "out"
                    exit 1
                }
            }
        }' > /run/answer || fail "$(cat /run/answer)"
    answers=$((answers + 1))
done
wait $client
holds "$answers > 2" 'answers'
figure "$answers answers under load"
