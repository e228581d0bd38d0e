# How deep the stack of each entry becomes, from the call of Rust on, of the 16 kB that a task has. Each
# discipline, shapers in shapers as deep as they may be, classes and filters, and their changes. `build` is
# what a task does before it locks a queue: it reads, plans and builds.
# Seconds: 600
network
tree fq_codel
echo 1 > /sys/module/sch_fairgate/parameters/stack

# passes: packets both ways, and what is read.
passes() {
    pings 5
    tcp 64K > /dev/null
    tc -s class show dev va > /run/classes
    tc -s qdisc show dev va > /run/qdiscs
}

while read -r spec; do
    case $spec in '' | '#'*) continue ;; esac
    fairgate-qdisc change va "$spec" || tree "$spec"
    passes
done < /disciplines
deep=sqf
for _ in 1 2 3 4 5 6 7; do
    deep="tbf rate=100mbit burst=20kb / $deep"
done
fairgate-qdisc replace va "$deep"
passes

# Three levels of classes, each of another kind, with filters of the packet's bytes.
cat > /run/classes.toml << 'END'
[queue.line]
discipline = "htb"
default = 3
[[queue.line.class]]
id = 1
rate = "100mbit"
[[queue.line.class]]
id = 2
parent = 1
rate = "50mbit"
ceil = "100mbit"
discipline = "hfsc"
default = 1
class = [{ id = 1, ls = "50mbit", discipline = "cake" }]
[[queue.line.class]]
id = 3
parent = 1
rate = "50mbit"
ceil = "100mbit"
discipline = "cbq"
bandwidth = "100mbit"
default = 2
class = [
    { id = 1, rate = "100mbit" },
    { id = 2, parent = 1, rate = "90mbit", discipline = "gred" },
]
[[queue.line.filter]]
class = 2
protocol = "icmp"
END
fairgate-qdisc replace va @/run/classes.toml
passes
sed 's/50mbit/40mbit/' /run/classes.toml > /run/others.toml
fairgate-qdisc change va @/run/others.toml
passes
fairgate-qdisc change va @/run/classes.toml
tc qdisc del dev va root
cat /sys/module/sch_fairgate/parameters/stack > /run/deepest
echo 0 > /sys/module/sch_fairgate/parameters/stack
figure "bytes of stack: $(tr '\n' ' ' < /run/deepest)"
while read -r entry most; do
    bytes=$(awk -v entry="$entry" '$1 == entry { print $2 }' /run/deepest)
    paced "$bytes > 100 && $bytes < $most" "bytes of stack in $entry"
done << 'MOST'
enqueue 2048
dequeue 2048
flush 2048
change 2048
statistics 2048
dump 2560
delete 2048
build 8192
MOST
