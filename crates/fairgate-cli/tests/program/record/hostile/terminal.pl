#!/usr/bin/perl
# The terminal of the caller: there is none, and so nothing can be typed into it.
my $letters = "echo THROUGH: typed\n";
open my $tty, '+<', '/dev/tty' and print "THROUGH: /dev/tty\n";
for my $number (0 .. 9) {
    open my $file, '+<&=', $number or next;
    print "THROUGH: descriptor $number is a terminal\n" if -t $file;
    for my $letter (split //, $letters) { ioctl $file, 0x5412, $letter }
    ioctl $file, 0x540e, 1 and print "THROUGH: a controlling terminal\n";
}
# In a session of its own, whose leader gets the first terminal that it opens.
my $child = fork;
if (!$child) {
    syscall 112;
    open $tty, '+<', '/dev/tty' and print "THROUGH: /dev/tty in a session of its own\n";
    for my $number (0 .. 9) { open my $file, '+<', "/proc/self/fd/$number" and -t $file and print "THROUGH\n" }
    exit;
}
waitpid $child, 0;
system 'tc qdisc add dev e root pfifo limit 3';
