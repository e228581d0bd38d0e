#!/usr/bin/perl
# What the stand-ins wrote down before is kept, whatever the script puts in its place: a link to a file that only
# root reads, a pipe that nobody writes.
use POSIX;
system 'tc qdisc add dev e root pfifo limit 3';
my $journal = '/run/fairgate-record/journal';
open my $locked, '<', $journal and flock $locked, 2;
rename $journal, "$journal.old";
symlink '/etc/shadow', $journal;
unlink $journal if @ARGV;
POSIX::mkfifo($journal, 0666);
