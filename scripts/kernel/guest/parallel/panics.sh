# The Rust code panics while TCP passes on two processors: the traffic goes on, and bytes are conserved.
# Seconds: 180
panics=provoked
network
for entry in enqueue enqueued dequeue statistics; do
    tree 'tbf rate=100mbit burst=20kb / fq_codel'
    caught=$(parameter panics)
    iperf3 -c $there -t 3 -P 4 --bidir -i 0 -f m > /run/iperf &
    client=$!
    sleep 1
    echo $entry > /sys/module/sch_fairgate/parameters/panic_in
    [ $entry != statistics ] || tc -s qdisc show dev va > /dev/null
    wait $client || { cat /run/iperf; fail "$entry: TCP did not go on"; }
    [ "$(parameter panics)" -eq $((caught + 1)) ] || fail "$entry: $(parameter panics) panics"
    [ "$(shown panicked)" -eq 1 ] || fail "$entry: it does not say that it panicked"
    pings 5
    balanced
    figure "$entry: $(rate TX-C)Mbit/s, $(shown passed) packets passed through the fifo"
done
