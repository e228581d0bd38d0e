# Disciplines and devices are deleted while they are full.
# Seconds: 180
for spec in 'tbf rate=10mbit burst=5kb / sqf' qfq \
    'tbf rate=2mbit burst=5kb / cake' 'tbf rate=1mbit burst=5kb / pfq'; do
    for what in discipline device; do
        network
        fairgate-qdisc add va "$spec"
        timeout 4 iperf3 -c $there -t 3 -P 8 -i 0 > /dev/null 2>&1 &
        client=$!
        sleep 1
        echo "$spec: $what with $(sent_and_waiting) bytes sent and waiting"
        case $what in
            discipline)
                tc qdisc del dev va root
                pings 3
                ;;
            device) ip link del va ;;
        esac
        kill -KILL $client 2> /dev/null || true
        clean
    done
done
