# %% [markdown]
# # Your own capture
#
# What would each discipline do to *your* traffic? `tcpdump -i eth0 -s 96 -w my.pcap` makes a capture. Here we
# use one of this repository: three TCP connections, a call and a video stream between two hosts.

# %%
from pathlib import Path

import fairgate as fg

root = next(folder for folder in (Path.cwd(), *Path.cwd().parents) if (folder / "examples").exists())
capture = root / "examples" / "recorded.pcap.gz"
found = fg.compare_trace(capture, ["fifo", "codel", "fq_codel", "sfq"], rate="15mbit")
found

# %% [markdown]
# Which share of packets had at most which delay, for the whole direction and for a single flow:

# %%
figure = found.delay_cdf()

# %%
found.groups

# %%
found.to_pandas(found.groups[-1])[["discipline", "throughput_bps", "loss", "delay_p95_ns"]]

# %% [markdown]
# A replayed capture does not react: its senders do not slow down if a packet is lost. `closed_loop=True`
# simulates the connections of the capture instead, with senders that react.

# %%
fg.compare_trace(capture, ["fifo", "fq_codel"], rate="15mbit", closed_loop=True)
