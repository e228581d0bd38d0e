#!/bin/sh
# Namespaces in which the script would have privileges again, and other roots.
for option in -U -Ur -m -n -p -i -u -C -Urm -Urn -T; do
    unshare $option true 2>/dev/null && echo "THROUGH: unshare $option"
done
for kind in user mnt net pid ipc uts cgroup; do
    nsenter --$kind=/proc/1/ns/$kind true 2>/dev/null && echo "THROUGH: nsenter $kind"
    nsenter --$kind=/proc/self/ns/$kind true 2>/dev/null && echo "THROUGH: nsenter its own $kind"
done
chroot / true 2>/dev/null && echo "THROUGH: chroot"
mkdir -p /tmp/a/b && (cd /tmp/a && pivot_root . b) 2>/dev/null && echo "THROUGH: pivot_root"
perl -e '
    # clone with each flag of a namespace, and clone3, which takes them in memory
    for my $flag (0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000, 0x00020000) {
        my $child = syscall 56, $flag | 17, 0, 0, 0, 0;
        if ($child == 0) { print "THROUGH: clone $flag\n"; exit }
        waitpid $child, 0 if $child > 0;
    }
    my $arguments = pack "Q8", 0x10000000, 0, 0, 0, 17, 0, 0, 0;
    my $child = syscall 435, $arguments, 64;
    if ($child == 0) { print "THROUGH: clone3\n"; exit }
'
tc qdisc add dev e root pfifo limit 3
