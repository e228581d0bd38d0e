# Rates that follow the line, where the kernel forwards: by a file, and by pings. What is inside the shaper
# goes on while its rate changes.
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

[run.autorate]
file = "rates.txt"
egress = { min = "1mbit", base = "8mbit", max = "20mbit" }
ingress = { min = "1mbit", base = "10mbit", max = "30mbit" }

[queue.up]
discipline = "cake"
bandwidth = "8mbit"

[queue.down]
discipline = "tbf"
rate = "10mbit"
burst = "20kb"
inner = { discipline = "fq_codel" }
END

# follows PATTERN: the status has it.
follows() {
    asked status --json | tr -d '\n ' | grep -qE "$1"
}

must_fail 'autorate. needs a process' in_b fairgate run --kernel --detach /run/home.toml
start
tcp 512K > /run/rates
holds "$(cut -d ' ' -f 1 /run/rates) < 10.3 && $(cut -d ' ' -f 2 /run/rates) < 8.3" 'Mbit/s at the base'
figure "Mbit/s into and out of it at 10 and 8: $(cat /run/rates)"
iperf3 -c $there -t 4 -P 4 -i 0 > /run/iperf &
client=$!
for rate in 3 20 5 25 4; do
    printf 'egress 3mbit\ningress %smbit\n' $rate > /run/rates.new
    mv /run/rates.new /run/rates.txt
    until_true 20 follows "\"rate_bps\":${rate}000000,"
done
wait $client
has '"revision":0,' '"refused":0' '"state":"file"'
# The burst of the shaper, 20 kB, is 4 % of it.
tcp 512K > /run/rates
holds "$(cut -d ' ' -f 1 /run/rates) < 4.2 && $(cut -d ' ' -f 2 /run/rates) < 3.2" 'Mbit/s by the file'
figure "at 4 and 3, by a file: $(cat /run/rates)"
has '"discipline":"tbf"'
root=$(of '"tbf"' dequeued) inner=$(of '"fq_codel"' dequeued)
[ "$root" = "$inner" ] || fail "the shaper has sent $root packets and what is inside it $inner"
paced "$inner > 1000" 'packets that are counted through all changes'
figure "packets through all changes: $inner; $(grep -oE '"longest_pause_us":[0-9.]+' /run/flat | tail -n 1)"
ends

# The rates rise while the line takes more, and pings stay short. The line has no limit here. A debug kernel
# is too slow to fill it.
is_debug && { figure 'rates by pings are not judged'; exit 0; }
rm /run/rates.txt
sed -i "s/^file = .*/reflectors = [\"$here\"]/" /run/home.toml
start
until_true 20 follows '"baseline_us":[0-9]'
iperf3 -c $there -t 6 -P 4 -i 0 > /run/iperf &
client=$!
until_true 60 follows '"rate_bps":(1[5-9]|2[0-9]|30)[0-9]{6},"min'
wait $client
has '"refused":0'
figure "by pings: $(grep -oE '"from":"vb","rate_bps":[0-9]+' /run/flat)"
ends
