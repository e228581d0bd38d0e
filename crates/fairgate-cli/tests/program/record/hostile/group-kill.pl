#!/usr/bin/perl
# The first thing that it does.
system 'tc qdisc add dev e root pfifo limit 3';
kill 'KILL', 0;
