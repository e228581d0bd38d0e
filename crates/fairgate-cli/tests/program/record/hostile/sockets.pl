#!/usr/bin/perl
# No socket of the host can be reached. The arguments are the path of one, the name of an abstract one, and a
# port of TCP on which the host listens.
use Socket;
my ($path, $abstract, $port) = @ARGV;
for my $address ($path, "\0$abstract") {
    socket(my $to, AF_UNIX, SOCK_STREAM, 0) or next;
    print "THROUGH: connected to a Unix socket\n" if connect $to, pack_sockaddr_un($address);
}
for my $host ('127.0.0.1', '0.0.0.0') {
    socket(my $to, AF_INET, SOCK_STREAM, 0) or next;
    local $SIG{ALRM} = sub { die };
    eval { alarm 1; print "THROUGH: connected by TCP\n" if connect $to, pack_sockaddr_in($port, inet_aton($host)) };
    alarm 0;
}
# Bluetooth, AppleTalk, packets, keys, AX.25, TIPC, ALG, vsock, XDP
for my $family (31, 5, 17, 15, 3, 30, 38, 40, 44) {
    print "THROUGH: a socket of family $family\n" if socket my $other, $family, SOCK_RAW, 0;
    print "THROUGH: a socket of family $family\n" if socket my $other, $family, SOCK_STREAM, 0;
}
# Netlink: events of devices, audit, netfilter
for my $protocol (15, 9, 12) {
    print "THROUGH: netlink $protocol\n" if socket my $other, 16, SOCK_RAW, $protocol;
}
system 'tc qdisc add dev e root pfifo limit 3';
