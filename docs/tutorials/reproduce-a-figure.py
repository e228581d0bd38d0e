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
import tempfile

folder = tempfile.mkdtemp()
found = fg.reproduce("sqf-fig3", quick=True, out=folder)
found

# %% [markdown]
# The figures are in the folder, beside the measured values as CSV files. The first one is that of the paper:

# %%
from pathlib import Path

from IPython.display import SVG

SVG(Path(folder, "sqf-fig3", "figure-1.svg").read_text())

# %% [markdown]
# Measured beside published values:

# %%
for row in found["experiments"][0]["rows"][:5]:
    print(row)

# %% [markdown]
# Formulas beside the real code: the delay in M/M/1, and through a fifo.

# %%
fg.theory("mm1", load=0.8, seeds=3)
