#!/bin/sh
# Namespaces in which the script would have privileges again, and other roots.
for option in -U -Ur -m -n -p -i -u -C -Urm -Urn -T; do
    unshare $option true 2>/dev/null && echo "THROUGH: unshare $option"
done
# The stand-in of nsenter runs the command where it is, so the namespace must be the same.
for kind in user mnt net pid ipc uts cgroup; do
    mine=$(readlink /proc/self/ns/$kind)
    for process in 1 self; do
        entered=$(nsenter --$kind=/proc/$process/ns/$kind readlink /proc/self/ns/$kind 2>/dev/null)
        [ -n "$entered" ] && [ "$entered" != "$mine" ] && echo "THROUGH: nsenter $kind of $process"
    done
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
