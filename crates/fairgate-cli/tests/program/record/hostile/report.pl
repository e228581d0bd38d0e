#!/usr/bin/perl
# The report is not the script's: no descriptor of process 1 or of the stages can be opened.
for my $number (0 .. 9) {
    print "THROUGH: descriptor $number of process 1\n" if open my $in, '+<', "/proc/1/fd/$number";
}
for my $name ('root', 'cwd', 'exe') {
    my $target = readlink "/proc/1/$name";
    print "THROUGH: /proc/1/$name is $target\n" if defined $target;
}
for my $name ('mem', 'environ', 'auxv', 'maps') {
    print "THROUGH: /proc/1/$name\n" if open(my $in, '<', "/proc/1/$name") && sysread $in, my $text, 1;
}
opendir my $folder, '/proc/self/fd' or die;
for my $number (grep /^\d+$/, readdir $folder) {
    my $target = readlink "/proc/self/fd/$number";
    # This script, and the folder that is being read.
    next if !defined $target || $target =~ m{^/proc/|hostile|/dev/null$};
    print "THROUGH: descriptor $number is $target\n" unless $number < 3 && $target =~ /^pipe:/;
}
system 'tc qdisc add dev e root pfifo limit 3';
