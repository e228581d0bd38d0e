# For how long a change holds the lock of the queue: instructions, of one rate among many classes, and of
# single disciplines. The clock of the guest counts them.
# Seconds: 300
network

# classes COUNT RATE: htb with so many classes, of which the last one has this rate.
classes() {
    awk -v count="$1" -v rate="$2" 'BEGIN {
        print "[queue.line]\ndiscipline = \"htb\"\ndefault = 2"
        print "[[queue.line.class]]\nid = 1\nrate = \"900mbit\""
        for (id = 2; id <= count + 1; id++) {
            print "[[queue.line.class]]\nid = " id "\nparent = 1\nceil = \"900mbit\"\ndiscipline = \"sfq\""
            print "rate = \"" (id > count ? rate : "100kbit") "\""
        }
    }' > "$3"
}
for count in 10 100 1000; do
    classes $count 100kbit /run/before.toml
    classes $count 200kbit /run/after.toml
    fairgate-qdisc replace va @/run/before.toml
    pings 3
    fairgate-qdisc change va @/run/after.toml
    pings 3
    figure "a rate among $count classes: $(shown change_ns) instructions"
done
fairgate-qdisc replace va 'tbf rate=20mbit burst=20kb / fq_codel'
pings 3
fairgate-qdisc change va 'tbf rate=30mbit burst=20kb / fq_codel'
figure "the rate of a shaper: $(shown change_ns) instructions"
fairgate-qdisc change va 'tbf rate=30mbit burst=20kb / sqf'
figure "another discipline in it: $(shown change_ns) instructions"
