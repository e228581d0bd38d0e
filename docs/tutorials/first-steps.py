# %% [markdown]
# # First steps
#
# An evening at home: four downloads and a call share a line of 20 Mbit/s. What does the queue in front of the
# line do to the call?

# %%
import fairgate as fg


def evening(queue):
    return fg.Scenario(
        "10s",
        queues={"line": fg.Tree.parse(queue)},
        links=[fg.Link("server", "home", rate="20mbit", delay="10ms", queue_a="line")],
        flows=[
            fg.Flow("downloads", "server", "home", count=4, tcp={"congestion_control": "cubic"}),
            fg.Flow("call", "server", "home", voip={}),
        ],
    )


evening("fifo")

# %% [markdown]
# The same scenario as the file that `fairgate simulate` takes:

# %%
print(evening("fifo").to_toml())

# %% [markdown]
# Run it with two queues. The same seed gives the same figures, to the last digit.

# %%
results = {queue: evening(queue).run(seed=1) for queue in ("fifo", "fq_codel")}
results["fifo"]

# %%
results["fq_codel"]

# %% [markdown]
# The delays of the call's packets, as a distribution:

# %%
from fairgate.figures import Figures

figure = Figures(results).delay_cdf(["call"])

# %% [markdown]
# Tables are in Arrow's memory layout. pandas and polars read them without a copy.

# %%
results["fifo"].groups.to_pandas()[["group", "goodput_bps", "delay_mean_ns", "loss_ratio"]]

# %% [markdown]
# A wrong setting is an exception with the location, the rule and the remedy:

# %%
try:
    evening("fq_codel tagret=5ms")
except fg.InputError as error:
    print(error)
