#!/usr/bin/perl
# More commands than anybody keeps.
open my $journal, '>>', '/run/fairgate-record/journal' or die;
my $entry = '{"program":"tc","words":["qdisc","add","dev","e","root","pfifo"],"place":null}' . "\n";
for (1 .. 40) { syswrite $journal, $entry x 13000 or last }
