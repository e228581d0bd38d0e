# `fairgate run --kernel` on an interface: status, changes that are made and refused, a panic, and its end. A
# run that was killed leaves its trees working, and the next one replaces them.
# Seconds: 300
panics=provoked
network

# On `vb`, whose peer has nothing else to do. Its classes and filters are as in examples/.
cat > /run/home.toml << 'END'
[run]
device = "vb"
egress = "up"
ingress = "down"
frames = 2000

[queue.up]
discipline = "htb"
default = 20

[[queue.up.class]]
id = 1
rate = "20mbit"
estimator = "250ms 8s"

[[queue.up.class]]
id = 10
parent = 1
rate = "5mbit"
ceil = "20mbit"
discipline = "fq_codel"

[[queue.up.class]]
id = 20
parent = 1
rate = "15mbit"
ceil = "20mbit"
discipline = "sfq"

[[queue.up.filter]]
class = 10
protocol = "icmp"

[queue.down]
discipline = "tbf"
rate = "30mbit"
burst = "20kb"
estimator = "250ms 8s"
inner = { discipline = "fifo" }
END
. /a_run.sh

# What the kernel does not have, and what somebody else has set up.
sed 's/^frames.*/delay = "5ms"/' /run/home.toml > /run/wrong.toml
must_fail 'does not have .delay' in_b fairgate run --kernel --socket $socket /run/wrong.toml
grep -q 'wrong.toml:5' /run/said || fail 'the error does not say where'
# What the kernel refuses, at its place: the ninth discipline inside another one.
{
    printf '[run]\ndevice = "vb"\negress = "up"\n'
    table=queue.up
    for _ in 1 2 3 4 5 6 7 8; do
        printf '[%s]\ndiscipline = "tbf"\nrate = "20mbit"\nburst = "20kb"\n' $table
        table=$table.inner
    done
    printf '[%s]\ndiscipline = "sqf"\n' $table
} > /run/deep.toml
must_fail 'kernel refuses .sqf.' in_b fairgate run --kernel --socket $socket /run/deep.toml
grep -q "deep.toml:$(wc -l < /run/deep.toml):" /run/said || fail 'the error does not say where'
in_b tc qdisc add dev vb root handle 7: fq_codel
must_fail 'has a qdisc already' in_b fairgate run --kernel --socket $socket /run/home.toml
in_b tc qdisc del dev vb root

start
in_b tc qdisc show | tee /run/qdiscs
[ "$(grep -c '^qdisc fairgate' /run/qdiscs)" -eq 2 ] || fail 'two trees are not attached'
pings 20
rates=$(tcp 1M)
figure "Mbit/s of TCP into and out of an interface shaped to 30 and 20: $rates"
has '"from":"vb","to":"host"' '"from":"host","to":"vb"' '"discipline":"htb","class":null' \
    '"discipline":"fq_codel","class":10' '"discipline":"sfq","class":20' '"p99_us":[0-9]*[1-9]'
estimated='"estimated":\{"rate_bps":[1-9][0-9]+,'
of_class='"estimated_classes":\[\{"class":1,"rate_bps":[1-9][0-9]+,'
has "$estimated" "$of_class"
figure "$(grep -oE "$estimated" /run/flat) $(grep -oE "$of_class" /run/flat)"
into=$(sent 1) out=$(sent 2)
holds "$into > 200 && $out > 200" 'packets in each direction'
figure "packets into and out of it: $into $out"

# A change keeps what was counted.
asked class change 20 rate=4mbit ceil=4mbit --from host
has '"revision":1,' '"applied":1,"refused":0' "$estimated" "$of_class"
holds "$(sent 2) >= $out" 'packets after a change'
holds "$(of '"sfq","class":20' dequeued) > 200" 'packets of a class after a change'
tcp 256K > /run/rates
figure "Mbit/s into and out of it after a change to 4 out of it: $(cat /run/rates)"
holds "$(cut -d ' ' -f 2 /run/rates) < 4.2" 'Mbit/s out of it'
figure "$(grep -oE '"longest_pause_us":[0-9.]+' /run/flat)"

# The kernel refuses the second of two trees: the first one is what it was.
cp /run/home.toml /run/before.toml
sed -i -e 's/30mbit/10mbit/' -e '/^\[queue.up\]/,/^\[queue.down\]/{/^\[queue.down\]/!d}' /run/home.toml
printf '\n[queue.up]\ndiscipline = "cake"\nbandwidth = "20mbit"\nack_filter = "on"\n' >> /run/home.toml
# Before Linux 6.3 the reason is in the kernel's log only.
must_fail 'keeps no ACKs|log says why' asked reload
has '"revision":1,' '"discipline":"htb"' 'rate = \\"30mbit\\"|rate=\\"30mbit\\"'
tcp 512K > /run/rates
paced "$(cut -d ' ' -f 1 /run/rates) > 12" 'Mbit/s into it, as before'
cp /run/before.toml /run/home.toml
must_fail 'this process forwards' asked flows
asked record --for 900ms > /run/record || { cat /run/record; fail 'nothing is recorded'; }

# A panic of what reads the tree ends the reading and nothing else. Without estimators only who asks reads it.
sed -i '/^estimator/d' /run/home.toml
asked reload
has '"discipline":"htb"'
! grep estimated /run/flat || fail 'estimators are still there'
mark panic
echo tree > /sys/module/sch_fairgate/parameters/panic_in
must_fail 'does not say what is in the queue' asked status
grep -q 'goes on' /run/said || fail 'it does not say that the run goes on'
kernel_log panic | grep -q 'fairgate.*panic.*rs:[0-9]' || fail 'the log does not name file and line'
has '"discipline":"htb"'
ends

# Killed: the trees go on, and the next run takes their places.
start
kill -KILL $pid
wait $pid || true
in_b tc qdisc show | tee /run/qdiscs
[ "$(grep -c '^qdisc fairgate' /run/qdiscs)" -eq 2 ] || fail 'a killed run takes its trees along'
pings 5
tcp 128K > /dev/null
start
in_b tc qdisc show | tee /run/qdiscs
[ "$(grep -c '^qdisc fairgate' /run/qdiscs)" -eq 2 ] || fail 'two trees are not attached again'
[ "$(in_b tc filter show dev vb ingress | grep -c 'Redirect to device')" -eq 1 ] || fail 'not one redirect'
pings 5
has '"revision":0,'
holds "$(sent 1) >= 5" 'packets of the new run'
ends

# Left there without a process: the trees work, and `stop` takes them away, but not those of a run.
in_b fairgate run --kernel --detach /run/home.toml > /run/said
grep -q 'fairgate stop vb' /run/said || { cat /run/said; fail 'it does not say how to take it away'; }
in_b tc qdisc show | tee /run/qdiscs
[ "$(grep -c '^qdisc fairgate' /run/qdiscs)" -eq 2 ] || fail 'two trees are not left'
pings 5
tcp 128K > /dev/null
in_b fairgate stop vb
left_behind
code=0
in_b fairgate stop vb || code=$?
[ $code -eq 1 ] || fail "the exit code of what was not there is $code"
start
must_fail 'already forwards' in_b fairgate stop vb
ends

# Something takes its qdisc away: it ends, and takes the rest along, but no filter of others.
start
in_b tc filter add dev vb egress matchall action pass
in_b tc qdisc del dev vb root
code=0
wait $pid || code=$?
[ $code -eq 3 ] || { cat /run/said; fail "the exit code is $code"; }
grep -q 'is gone' /run/said /run/last || { cat /run/said /run/last; fail 'it does not say what is gone'; }
in_b tc filter show dev vb egress | grep -q matchall || fail 'the filter of others is gone'
in_b tc qdisc del dev vb clsact
left_behind
