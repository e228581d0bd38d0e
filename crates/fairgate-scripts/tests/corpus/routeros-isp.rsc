/queue type
add kind=fq-codel name=smart fq-codel-limit=1000
add kind=pcq name=by-host pcq-classifier=dst-address
/queue tree
add name=down parent=bridge-lan max-limit=90M
add name=down-calls parent=down packet-mark=calls priority=1 limit-at=2M max-limit=90M queue=smart
add name=down-rest parent=down packet-mark=no-mark priority=8 max-limit=90M queue=by-host
/queue simple
add name=shop target=198.51.100.8/32 max-limit=10M/40M limit-at=2M/8M priority=4/4 queue=smart/smart
add name=kiosk target=198.51.100.9/32 max-limit=2M/4M burst-limit=4M/8M burst-threshold=1M/2M burst-time=8s/8s
/ip address
add address=198.51.100.1/24 interface=bridge-lan
