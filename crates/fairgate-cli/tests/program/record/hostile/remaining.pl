#!/usr/bin/perl
# Processes that go on in a session of their own and ignore all signals. The argument is how long they sleep.
$SIG{$_} = 'IGNORE' for grep !/^(KILL|STOP|CHLD|CLD|NUM\d+|__.*)$/, keys %SIG, 'HUP', 'INT', 'TERM', 'QUIT';
for (1 .. 3) {
    next if fork;
    syscall 112;
    fork and exit;
    exec 'sleep', $ARGV[0];
}
system 'tc qdisc add dev e root pfifo limit 3';
