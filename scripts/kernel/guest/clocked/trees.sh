# The trees of the example files: TCP both ways, ping, and conservation. Those that a list of subscribers
# makes are not files of trees.
# Seconds: 120
network
for file in /examples/*.toml; do
    for queue in $(sed -n 's/^\[queue\.\([a-z_]*\)\]$/\1/p' "$file"); do
        tree "@$file" --queue "$queue"
        set -- $(tcp 512K -P 2)
        pings 5
        balanced > /dev/null
        figure "$(basename "$file") $queue: $1 and $2 Mbit/s, $(tc class show dev va | wc -l) classes"
    done
done
