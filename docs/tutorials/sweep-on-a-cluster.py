# %% [markdown]
# # A sweep on a cluster
#
# How does the target of `fq_codel` trade delay for goodput, with one, four and sixteen downloads? A sweep runs
# all combinations with several seeds. The executor decides where: here a cluster of Dask on this machine, but
# `distributed.Client("tcp://scheduler:8786")` is the same.

# %%
import tempfile

from distributed import Client, LocalCluster

import fairgate as fg

scenario = fg.Scenario(
    "2s",
    queues={"line": fg.Tree("fq_codel")},
    links=[fg.Link("server", "home", rate="20mbit", delay="20ms", queue_a="line")],
    flows=[fg.Flow("downloads", "server", "home", tcp={"congestion_control": "cubic"})],
)
grid = {
    "queue.line.target": ["1ms", "5ms", "20ms"],
    "simulate.flow.downloads.count": [1, 4, 16],
}
folder = tempfile.mkdtemp()
with LocalCluster(2, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster) as client:
    found = fg.sweep(scenario, grid, 2, client, out=folder)
found.done, found.skipped

# %% [markdown]
# The results are one Parquet data set. If the sweep is interrupted, the same call goes on where it was:

# %%
again = fg.sweep(scenario, grid, 2, out=folder)
assert (again.done, again.skipped) == (0, 18)

# %%
table = found.to_pandas()
table["delay, ms"] = table["delay_mean_ns"] / 1e6
table["goodput, Mbit/s"] = table["goodput_bps"] / 1e6
delays = table.pivot_table("delay, ms", "queue.line.target", "simulate.flow.downloads.count")
delays

# %% [markdown]
# A curve for each number of downloads, a point for each target:

# %%
from matplotlib import pyplot

axes = pyplot.subplots(layout="constrained")[1]
for count, rows in table.groupby("simulate.flow.downloads.count"):
    means = rows.groupby("queue.line.target")[["delay, ms", "goodput, Mbit/s"]].mean()
    means = means.sort_values("delay, ms")
    axes.plot(means["delay, ms"], means["goodput, Mbit/s"], marker="o", label=f"{count} downloads")
axes.set(xlabel="delay, ms", ylabel="goodput, Mbit/s")
axes.grid(alpha=0.3)
legend = axes.legend(frameon=False)
