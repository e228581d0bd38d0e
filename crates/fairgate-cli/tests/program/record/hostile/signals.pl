#!/usr/bin/perl
# Signals to the own process group, to all processes, and to process 1. A child tries what would end itself.
sub attempt {
    my ($signal, $process) = @_;
    my $child = fork;
    if (!$child) { kill $signal, $process; sleep 1; exit 7 }
    waitpid $child, 0;
}
for my $signal ('STOP', 'CONT', 'HUP', 'INT', 'QUIT', 'TERM', 'KILL') {
    attempt($signal, 1) if $signal eq 'STOP' || $signal eq 'KILL';
    kill $signal, 1;
    kill $signal, getppid;
}
kill 0, 1 and $< != 0 and print "THROUGH: process 1 takes signals\n";
system 'tc qdisc add dev e root pfifo limit 3';
# The last words.
kill 'KILL', -1;
kill 'KILL', 0;
