# %% [markdown]
# # Reproduce a figure of a paper
#
# Fairgate repeats the papers' experiments, and prints measured beside published values.

# %%
import fairgate as fg

fg.reproduce()

# %% [markdown]
# A short run of one of them, to see that it works. Claims may then fail for lack of data.

# %%
found = fg.reproduce("sqf-fig3", quick=True)
found

# %%
for row in found["experiments"][0]["rows"][:5]:
    print(row)

# %% [markdown]
# Formulas beside the real code: the delay in M/M/1, and through a fifo.

# %%
fg.theory("mm1", load=0.8, seeds=3)
