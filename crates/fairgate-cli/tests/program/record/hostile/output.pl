#!/usr/bin/perl
# Text without end, with all that a terminal obeys.
$| = 1;
print "\e]0;title\a\e[2J\e[31mred\e[0m\x{9b}2J\r\b\x{7f}\n";
print "\xe2\x80\xaemirrored\n";
print 'x' x 65536 for 1 .. 800;
system 'tc qdisc add dev e root pfifo limit 3';
