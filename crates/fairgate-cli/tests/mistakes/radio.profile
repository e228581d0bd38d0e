name radio
samples 2000
prob delay
0    2
0.8  2ms
120% 15
