# A radio link: most packets pass at the first attempt, and one in ten is lost after several.
name        radio
samples     10
loss-level  0.9
bw          11Mbit/s
prob        delay
0           2
0.8         2      # preamble and contention
0.8         15
1           45     # retransmissions
