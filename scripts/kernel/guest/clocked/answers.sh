# Who asks a run whose packets the kernel forwards gets the figures of its qdiscs: status, API, metrics, the
# data of the page, top, recordings, reservations, subscribers.
# Seconds: 300
network
ip -n b link set lo up
. /a_run.sh

cat > /run/home.toml << 'END'
[run]
device = "vb"
egress = "up"
ingress = "down"
frames = 2000
api = "unix:/run/api.sock"
metrics = "127.0.0.1:9095"

[queue.up]
discipline = "htb"
default = 20

[[queue.up.class]]
id = 10
rate = "5mbit"
discipline = "fq_codel"

[[queue.up.class]]
id = 20
rate = "15mbit"
discipline = "sfq"

[[queue.up.filter]]
class = 10
protocol = "icmp"

[queue.down]
discipline = "tbf"
rate = "30mbit"
burst = "20kb"
inner = { discipline = "fifo" }
END

same() {
    [ "$2" = "$3" ] || { cat /run/flat; fail "$1: $2 and $3"; }
}
# api PATH [OPTION...]: the answer of the API is in /run/flat, without spaces.
api() {
    local path=$1
    shift
    in_b curl -sS --fail-with-body --max-time 20 --unix-socket /run/api.sock "$@" "http://localhost$path" \
        > /run/answer || { cat /run/answer; fail "the API refuses $path"; }
    tr -d '\n ' < /run/answer > /run/flat
}
# value KEY: the first number of this name in /run/flat.
value() {
    grep -oE "\"$1\":[0-9.]+" /run/flat | head -n 1 | cut -d : -f 2
}
# counted DEVICE COUNTER: what the qdisc says itself.
counted() {
    in_b fairgate-qdisc show "$1" | tr ' ' '\n' | awk -F = -v key="$2" '$1 == key { print $2 }'
}
# came_in WHAT COUNT: it counts what had come in, and perhaps a late packet. Those happen in a slow guest.
came_in() {
    { [ "$2" -ge "$into" ] && [ "$2" -le "$(counted "$ifb" dequeued_packets)" ]; } ||
        fail "$1: $2, and at least $into"
}
# metric NAME LABEL: the value of the series that has this label.
metric() {
    awk -v name="$1{" -v label="$2" \
        'index($0, name) == 1 && index($0, label) { print $NF; exit }' /run/metrics
}
has_api() {
    api "$1"
    grep -qE "$2" /run/flat
}

start
ifb=$(in_b sh -c 'cd /sys/class/net && echo fg-in-*')
# The thread of the history has read the run before.
usleep 2100000
pings 30
tcp 512K > /run/rates
# Until nothing moves any more, for longer than the history waits. In a slow guest connections end late.
for _ in 1 2 3 4 5; do
    into=$(counted "$ifb" dequeued_packets)
    usleep 2100000
    [ "$into" != "$(counted "$ifb" dequeued_packets)" ] || break
done

# The status, and the qdiscs themselves.
has '"from":"vb"'
into=$(counted "$ifb" dequeued_packets) out=$(counted vb dequeued_packets)
paced "$into > 200 && $out > 200" 'packets in each direction'
came_in 'the status into it' "$(sent 1)"
same 'the status out of it' "$(sent 2)" "$out"
icmp='"fq_codel","class":10'
same 'pings in their class' "$(of "$icmp" dequeued)" 30
same 'the other class' "$(of '"sfq","class":20' dequeued)" $((out - 30))
same 'the root' "$(of '"htb","class":null' enqueued)" "$(counted vb enqueued_packets)"

# The API.
api /v1/status
came_in 'the API into it' "$(sent 1)"
same 'the API out of it' "$(sent 2)" "$out"
api /v1/status/host
same 'a direction' "$(sent 1)" "$out"
api '/v1/status/host/class?path=10'
same 'a class' "$(of '"fq_codel"' dequeued)" 30
has_api /v1/health '"revision":0' || fail 'the health has no revision'
api '/v1/outline?from=host'
grep -q '15mbit' /run/flat || fail 'the outline does not have a rate'
in_b curl -sS --unix-socket /run/api.sock 'http://localhost/v1/flows' > /run/flat
grep -q 'this process forwards' /run/flat || fail 'the API does not say why there are no flows'

# Metrics.
in_b wget -q -O /run/metrics http://127.0.0.1:9095/metrics
came_in 'the metric into it' "$(metric fairgate_sent_packets_total 'from="vb"')"
same 'the metric out of it' "$(metric fairgate_sent_packets_total 'from="host"')" "$out"
same 'the metric of a class' "$(metric fairgate_class_sent_packets_total 'class="10"')" 30
same 'the metric of bytes' "$(metric fairgate_sent_bytes_total 'from="host"')" "$(counted vb dequeued_bytes)"

# The page, and its data.
in_b curl -sS --unix-socket /run/api.sock http://localhost/ | grep -q '<html' || fail 'there is no page'
api '/v1/classes?from=host&sort=rate'
same 'classes that packets came to' "$(value count)" 3
grep -q '"class":"10"' /run/flat || fail 'the class of pings is not on the page'
api '/v1/history?from=host'
# The root is the first one. A rate is that of the time since the step before.
bytes=$(sed -E 's/.*"at_s":\[([^]]*)\].*"class":"root"[^[]*"rate_bps":\[([^]]*)\].*/\1 \2/' /run/flat | awk '{
    n = split($1, at, ","); split($2, rate, ",")
    for (i = 2; i <= n; i++) sum += rate[i] * (at[i] - at[i - 1]) / 8
    printf "%d", sum }')
wanted=$(counted vb dequeued_bytes)
holds "$bytes > 0.9 * $wanted && $bytes < 1.1 * $wanted" 'bytes of the history'
figure "packets into and out of it: $into $out, in status, API, metrics and qdiscs"
figure "bytes in the history: $bytes of $wanted"

# What classes do just now: 42 to 50 pings of 98 bytes a second, as exact as the ticks of the kernel.
ping -i 0.02 -q $there > /dev/null &
pinging=$!
usleep 300000
asked top --once --interval 1s > /run/top || { cat /run/top; fail 'top shows nothing'; }
rate=$(awk '
    { for (i = 2; i < NF; i++) if ($i == "fq_codel" && $(i - 1) == "10") { print $(i + 1); exit } }' /run/top)
cat /run/top
holds "${rate:-0} > 0.031 && ${rate:-0} < 0.040" 'Mbit/s of pings on the screen'
asked record --interval 500ms --for 1600ms > /run/record
rows=$(awk -F , 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
    $at["class"] == "10" { rows++; packets += $at["packets"]; seconds += $at["seconds"] }
    END { print rows + 0, packets / seconds }' /run/record)
holds "${rows% *} >= 2 && ${rows#* } > 40 && ${rows#* } < 51" 'rows and pings a second in a recording'
figure "pings every 20 ms: $rate Mbit/s in top, ${rows#* } a second in a recording"
kill $pinging

# Reservations, in a tree that can hold some.
sed -i '/^\[queue.up\]/,/^\[queue.down\]/{/^\[queue.down\]/!d}' /run/home.toml
cat >> /run/home.toml << 'END'

[queue.up]
discipline = "tbf"
rate = "20mbit"
burst = "5kb"

[queue.up.inner]
discipline = "hfsc"
default = 1

[[queue.up.inner.class]]
id = 1
ls = "20mbit"
discipline = "fq_codel"
END
asked reload
asked reserve add call --rate 100kbit --burst 1kb --max-packet 300 --delay 50ms --from host \
    destination_port=5004 protocol=udp
asked reserve list --json > /run/status
tr -d '\n ' < /run/status > /run/flat
grep -q '"name":"call"' /run/flat || fail 'the reservation is not listed'
holds "$(value reserved_bps) >= 100000 && $(value promised_us) <= 50000" 'the promised rate and delay'
path=$(grep -oE '"class":"[0-9/]+"' /run/flat | grep -oE '[0-9/]+')
reserved=$(value reserved_bps)
api /v1/reservations
same 'the reservation in the API' "$(value reserved_bps)" "$reserved"
iperf3 -s -D -p 5004
until_true 5 sh -c 'netstat -ltn | grep -q :5004'
in_b iperf3 -c $here -p 5004 -u -b 80K -l 200 -k 20 -i 0 > /run/iperf
api "/v1/status/host/class?path=$path"
count=$(value packets)
# The client begins with a datagram of its own.
holds "$count >= 20 && $count <= 22" 'datagrams in the class of the reservation'
asked reserve withdraw call
asked reserve list --json | grep -q '"call"' && fail 'it is still reserved'
figure "a reservation of $reserved bit/s: $count of 20 datagrams and a greeting in class $path"
ends

# Subscribers of a list, whose file changes.
cat > /run/lines.toml << 'END'
[subscribers]
file = "lines.csv"
down = "100mbit"
up = "100mbit"

[plans.home]
down = "20mbit"
up = "8mbit"

[run]
device = "vb"
ingress = "down"
egress = "up"
frames = 2000
api = "unix:/run/api.sock"
END
printf 'id,name,prefixes,down,up,plan\n1001,Anna,%s,,,home\n' $there > /run/lines.csv
start /run/lines.toml
tcp 512K > /run/rates
paced "$(cut -d ' ' -f 1 /run/rates) < 20.5 && $(cut -d ' ' -f 2 /run/rates) < 8.3" 'Mbit/s of a subscriber'
figure "a subscriber of 20 and 8 Mbit/s: $(cat /run/rates)"
has '"subscriber":\{"id":"1001"'
# A neighbour may have been looked up, too: that is in the class of neighbour discovery.
same 'packets of a subscriber and of neighbours' \
    $(($(of '"id":"1001"' dequeued) + $(of '"name":"neighbourdiscovery"' dequeued))) "$(sent 1)"
paced "$(sent 1) > 300" 'packets of a subscriber'
api /v1/subscribers/1001
grep -q '"plan":"home"' /run/flat || fail 'the API does not have the plan'
# Why it is slow: it is not, now. There are no round trips here, and that is said.
api /v1/subscribers/1001/now
cat /run/flat
grep -q '"id":"1001"' /run/flat || fail 'the API does not say how the subscriber does'
asked doctor --subscriber Anna > /run/said || { cat /run/said; fail 'the doctor finds something'; }
cat /run/said
printf '1002,Ben,10.9.0.7,,,home\n' >> /run/lines.csv
sed -i 's/^1001.*/1001,Anna,10.9.0.2,4mbit,2mbit,/' /run/lines.csv
until_true 30 has_api /v1/subscribers '"id":"1002"'
has '"revision":1,' '"applied":1,"refused":0'
tcp 256K > /run/rates
paced "$(cut -d ' ' -f 1 /run/rates) < 4.2 && $(cut -d ' ' -f 2 /run/rates) < 2.2" 'Mbit/s by the new list'
figure "the list has changed to 4 and 2 Mbit/s: $(cat /run/rates)"
ends
