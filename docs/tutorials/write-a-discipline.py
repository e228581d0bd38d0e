# %% [markdown]
# # Write a discipline: SFQ in 40 lines
#
# Stochastic fair queueing (McKenney 1990) hashes flows into a number of queues and serves them in turn. It
# needs no state per flow. The price: two flows may be hashed into the same queue, and then share its turns.
# We write it, run it, and find that problem.

# %%
from collections import deque

import fairgate as fg


class Sfq(fg.Discipline):
    """Stochastic fair queueing, for a tutorial."""

    name = "my_sfq"
    queues = fg.Parameter(128, 1, 65536, unit="queues", doc="Number of queues.")
    limit = fg.Parameter(127, 1, 65536, unit="packets", doc="Largest number of packets.")

    def __init__(self):
        self.waiting = [deque() for _ in range(self.queues)]
        self.turns = deque()  # the queues that have packets
        self.length = 0

    def enqueue(self, packet, now):
        queue = self.waiting[packet.flow % self.queues]
        if not queue:
            self.turns.append(queue)
        queue.append(packet)
        self.length += 1
        if self.length > self.limit:
            self.drop_from_the_longest()

    def drop_from_the_longest(self):
        longest = max(self.turns, key=len)
        self.drop(longest.pop(), "longest_flow")
        self.length -= 1
        if not longest:
            self.turns.remove(longest)

    def dequeue(self, now):
        if not self.turns:
            return None
        queue = self.turns.popleft()
        packet = queue.popleft()
        self.length -= 1
        if queue:
            self.turns.append(queue)
        return packet


# %% [markdown]
# From now on `my_sfq` is a discipline like any other. Eight senders, each faster than its share, on a line of
# 8 Mbit/s:


# %%
def line(tree, duration="3s"):
    return fg.Scenario(
        duration,
        queues={"line": tree},
        links=[fg.Link("server", "home", rate="8mbit", delay="5ms", queue_a="line")],
        flows=[fg.Flow("sender", "server", "home", count=8, udp={"rate": "2mbit", "pattern": "poisson"})],
    )


fair = line(Sfq.tree(queues=4096)).run(seed=1)
few = line(Sfq.tree(queues=16)).run(seed=1)
[round(goodput / 1e6, 2) for goodput in fair.flows["goodput_bps"]]

# %% [markdown]
# Everybody has about 1 Mbit/s. With 16 queues:

# %%
[round(goodput / 1e6, 2) for goodput in few.flows["goodput_bps"]]

# %% [markdown]
# Some senders have half of the others' rate: they share a queue. How often does that happen? The hash has a
# key that depends on the seed, so each seed hashes the flows anew. The chance that eight flows are in
# different queues is that of the birthday problem.

# %%
from math import prod

for queues in (16, 64, 256):
    runs = line(Sfq.tree(queues=queues), "1s").run_seeds(20)
    alone = sum(run.jain > 0.99 for run in runs) / len(runs)
    theory = prod(1 - flow / queues for flow in range(8))
    print(f"{queues:4} queues: fair in {alone:4.0%} of runs, by the birthday problem in {theory:4.0%}")
    assert abs(alone - theory) < 0.4

assert few.jain < 0.99 < fair.jain

# %% [markdown]
# That is why SFQ changes the key of its hash from time to time (`perturb`), and why disciplines like `pfq` and
# `sqf` tell all flows apart.
#
# ## Mistakes
#
# A packet that is lost, or returned twice, is an exception that names the call:


# %%
class Forgetful(Sfq):
    """Loses every hundredth packet."""

    name = "my_forgetful_sfq"
    count = 0

    def enqueue(self, packet, now):
        self.count += 1
        if self.count % 100:
            super().enqueue(packet, now)


try:
    line(Forgetful.tree()).run()
except fg.DisciplineError as error:
    print(error)
else:
    raise AssertionError("the loss was not noticed")

# %% [markdown]
# Beside the library's disciplines, in the same comparison:

# %%
fg.compare(["my_sfq", "sfq", "fifo"], line(fg.Tree("fifo")))
