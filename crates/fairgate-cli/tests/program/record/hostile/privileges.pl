#!/usr/bin/perl
# Who the script is: root inside, nobody outside, and it stays so.
open my $status, '<', '/proc/self/status' or die;
for (<$status>) {
    print "THROUGH: $_" if /^Cap(Inh|Prm|Eff|Bnd|Amb):\s*0*[1-9a-f]/;
    print "THROUGH: $_" if /^NoNewPrivs:\s*0/ || /^Seccomp:\s*[01]$/;
}
open my $map, '<', '/proc/self/uid_map' or die;
my ($inside, $outside, $count) = split ' ', <$map>;
print "THROUGH: the map is $inside $outside $count\n" unless $inside == 0 && $count == 1;
for my $user (1, 65534, 1000) {
    $! = 0;
    syscall 105, $user;
    print "THROUGH: user $user\n" if $> == $user;
}
# A program with another owner's rights can be made, and gives none.
system 'cp /usr/bin/id /tmp/id && chmod 6755 /tmp/id && chown 1:1 /tmp/id 2>/dev/null && echo "THROUGH: chown"';
my $capabilities = pack 'L2', 0x20080522, 0;
my $all = pack 'L6', 0xffffffff, 0xffffffff, 0, 0xffffffff, 0xffffffff, 0;
print "THROUGH: capset\n" if syscall(126, $capabilities, $all) == 0;
for my $file ('/etc/shadow', '/proc/kcore', '/proc/1/stack', '/proc/kmsg') {
    print "THROUGH: $file can be read\n" if open(my $in, '<', $file) && sysread $in, my $text, 1;
}
system 'tc qdisc add dev e root pfifo limit 3';
