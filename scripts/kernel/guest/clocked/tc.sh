# The plugin of tc: it takes a tree, changes it, shows it and its counters, as text and as JSON, and says what
# is wrong with one.
network
tc qdisc add dev va root fairgate 'tbf rate=20mbit burst=20kb / sqf'
begin_count
pings 5
tc qdisc show dev va | grep -q "^qdisc fairgate.*tree 'tbf rate=20mbit burst=20kb / sqf'" ||
    fail 'the tree is not shown'
tc qdisc change dev va root fairgate 'tbf rate=4mbit burst=20kb / sqf'
iperf3 -c $there -n 1M -i 0 -f m > /run/iperf
rate=$(awk '/receiver/ { for (i = 1; i <= NF; i++) if ($i == "Mbits/sec") print $(i - 1) }' /run/iperf)
paced "$rate > 3 && $rate < 4.2" 'Mbit/s after a change'
figure "Mbit/s after a change to 4: $rate"
tc -s qdisc show dev va | tee /run/shown
grep -q 'marked 0 cut [0-9]* refused 0 change_ns [1-9]' /run/shown || fail 'the counters are not shown'
tc -s -j qdisc show dev va > /run/json
grep -q '"tree":"tbf rate=4mbit burst=20kb / sqf".*"change_ns":[1-9]' /run/json ||
    { cat /run/json; fail 'it is not in the JSON'; }
tc qdisc replace dev va root fairgate @/examples/office.toml
tc -s class show dev va > /run/classes
[ "$(grep -c '^class fairgate' /run/classes)" -eq 2 ] || { cat /run/classes; fail 'not two classes'; }
# A class above others has the sums of what is below it. Packets of no subscriber are in class 9.
tc qdisc replace dev va root handle 7: fairgate @/examples/isp.toml --queue access
begin_count
pings 3
tc -s class show dev va > /run/classes
grep -q '^class fairgate 7:9 parent 7:1 ' /run/classes || { cat /run/classes; fail 'no class has a parent'; }
sent() {
    awk -v class="7:$1" '$1 == "class" { is = $3 == class } is && /Sent/ { print $2; exit }' /run/classes
}
holds "$(sent 9) > 200 && $(sent 1) == $(sent 9)" 'bytes of a class and of the one above it'
tc qdisc replace dev va root handle 8: fairgate @/examples/office.toml
begin_count
must_fail 'color' tc qdisc change dev va root fairgate 'sqf color=red'
must_fail 'slots stay|log says why' tc qdisc change dev va root fairgate sqf --slots 7
must_fail 'TREE is one word' tc qdisc add dev va root fairgate help
tc qdisc replace dev va root fairgate
tc qdisc show dev va | grep -q "tree 'fq_codel'" || fail 'it is not the default'
pings 3
