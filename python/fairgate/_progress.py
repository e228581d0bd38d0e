"""Progress at a terminal and in notebooks."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["Progress", "Report", "shown"]

Progress = bool | Callable[[float], object] | None
"""True, False, a callable for the share that is done, or None: a bar if it takes long."""

Report = Callable[[int], object]

# A bar that nobody asked for appears after this time, in seconds.
_DELAY = 2.0


def _is_watched() -> bool:
    return sys.stderr.isatty() or "ipykernel" in sys.modules


@contextmanager
def shown(progress: Progress, whole: int, what: str = "simulating") -> Iterator[Report | None]:
    """Yield a function that takes how much of `whole` is done, or None if nobody wants to know."""
    if callable(progress):
        told = progress
        yield lambda done: told(min(done / whole, 1.0) if whole else 1.0)
        told(1.0)
        return
    if progress is False or (progress is None and not _is_watched()):
        yield None
        return
    from tqdm.auto import tqdm

    bar = tqdm(
        total=100.0,
        desc=what,
        delay=0.0 if progress else _DELAY,
        leave=bool(progress),
        bar_format="{desc}: {percentage:3.0f}%|{bar}| {elapsed}<{remaining}",
    )
    with bar:
        yield lambda done: bar.update(100.0 * min(done / whole, 1.0) - bar.n) if whole else None
        bar.update(100.0 - bar.n)
