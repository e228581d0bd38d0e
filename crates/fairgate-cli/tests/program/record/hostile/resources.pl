#!/usr/bin/perl
# Memory, processes and files in memory have limits, and everything is gone afterwards.
$SIG{XFSZ} = 'IGNORE';
my @children;
while (@children < 3000) {
    my $child = fork;
    last unless defined $child;
    if (!$child) { sleep 100; exit }
    push @children, $child;
}
print "THROUGH: 3000 processes\n" if @children >= 3000;
kill 9, @children;
waitpid $_, 0 for @children;
for my $place ('/tmp/big', '/run/big', '/dev/shm/big', '/big', '/sys/class/big') {
    my $written = 0;
    for my $file (1 .. 4) {
        open(my $out, '>', "$place$file") or next;
        for (1 .. 400) { last unless syswrite $out, 'x' x (1 << 20); $written++ }
    }
    print "THROUGH: $written MB in $place\n" if $written > 260;
}
my $hog = fork;
if (defined $hog && !$hog) {
    # Perl ends if there is no memory.
    my @memory = map { 'x' x (1 << 26) } 1 .. 48;
    print "THROUGH: 3 GB of memory\n";
    exit;
}
waitpid $hog, 0 if $hog;
unlink glob '/tmp/big* /run/big* /dev/shm/big* /big* /sys/class/big*';
system 'tc qdisc add dev e root pfifo limit 3';
