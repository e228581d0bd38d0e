"""Sweeps: a scenario with many values and seeds, on any executor, into one Parquet data set.

The parts of the data set are complete files: each is written under another name and renamed. The footer of
a part names the runs that it has. So a sweep that was interrupted goes on where it was, and no run is in the
data set twice, whatever happened to a worker. ``fairgate sweep`` writes the same format, so each of the two
goes on where the other was interrupted. Names of other files begin with ``_``, so that readers of data sets
pass over them.
"""

from __future__ import annotations

import fcntl
import itertools
import json
import os
import queue
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from multiprocessing.context import SpawnContext, SpawnProcess
from os import PathLike
from pathlib import Path
from typing import IO, Any, NamedTuple

from . import _arguments, _native
from ._optional import optional
from ._progress import Progress, shown
from ._toml import Table, clean
from .discipline import Discipline
from .errors import InputError, SweepError
from .results import Results
from .scenario import Scenario, chosen_seeds

__all__ = ["Sweep", "sweep"]

Measure = str | Callable[[Results], Mapping[str, Any]]
"""The name of a table of `Results`, or a function that returns the values of one row."""

# How many runs wait in the executor at most. More would only take memory.
_WAITING = 256
# A part has this share of the runs before it, and at most this number, as in ``fairgate sweep``.
_SHARE, _LARGEST = 16, 4096
# How often a pool of processes is replaced without a finished run in between.
_PATIENCE = 3

_RUNS = b"fairgate.runs"
_PLAN = "_sweep.json"
_LOCK = "_lock"
_TABLES = ("flows", "groups", "interfaces", "series", "observations")


class _Run(NamedTuple):
    id: str
    values: dict[str, Any]
    seed: int


class Sweep:
    """A data set of a sweep.

    Parameters
    ----------
    path : Path
        Its folder.
    done, skipped : int
        How many runs were done by this call, and how many were there before.
    """

    def __init__(self, path: Path, done: int, skipped: int) -> None:
        self.path, self.done, self.skipped = path, done, skipped

    @classmethod
    def read(cls, path: str | PathLike[str]) -> Sweep:
        """Open the data set of a finished or interrupted sweep, of this package or of ``fairgate sweep``.

        Raises
        ------
        SweepError
            If a part is broken.
        """
        folder = Path(path)
        return cls(folder, 0, len(_finished(folder)))

    def to_arrow(self) -> Any:
        """Return all rows as a ``pyarrow.Table``: the varied values, `seed`, and the figures.

        Raises
        ------
        SweepError
            If there are no rows, or a part is broken.
        """
        with optional("the rows of a sweep"):
            import pyarrow
            import pyarrow.parquet

        tables = []
        for part in _parts(self.path):
            try:
                table = pyarrow.parquet.read_table(part)
            except (OSError, ValueError, pyarrow.ArrowException) as error:
                raise _broken(part, error) from error
            # The program says of some columns that no value is missing.
            tables.append(table.cast(pyarrow.schema([field.with_nullable(True) for field in table.schema])))
        if not tables:
            raise SweepError(f"{self.path} has no rows: no run is finished; run the sweep first")
        return pyarrow.concat_tables(tables, promote_options="permissive")

    def to_pandas(self) -> Any:
        """Return all rows as a ``pandas.DataFrame``."""
        with optional("a data frame of pandas"):
            return self.to_arrow().to_pandas()

    def to_polars(self) -> Any:
        """Return all rows as a ``polars.DataFrame``."""
        with optional("a data frame of polars"):
            import polars

        return polars.DataFrame(self.to_arrow())

    def __repr__(self) -> str:
        return f"<Sweep in {self.path}: {self.done} runs done, {self.skipped} were there>"


def sweep(
    scenario: Scenario,
    grid: Mapping[str, Sequence[Any]] | None = None,
    seeds: int | Sequence[int] | None = None,
    executor: Executor | Any | None = None,
    *,
    out: str | PathLike[str],
    measure: Measure | None = None,
    progress: Progress = None,
) -> Sweep:
    """Run a scenario with all combinations of values and seeds.

    The results stream into a Parquet data set. The same call goes on after an interruption: what is finished
    is not run again. More values and seeds can be added later. What is not given is that of the section
    ``[sweep]``, if the scenario was read from a file for ``fairgate sweep``.

    Parameters
    ----------
    scenario : Scenario
        What is run.
    grid : mapping of str to sequence, optional
        The values by the path of what they replace, as for `Scenario.with_values`:
        ``{"queue.wan.target": ["5ms", "20ms"], "simulate.flow.downloads.count": [1, 4, 16]}``.
    seeds : int or sequence of int, optional
        The seeds, or how many from the scenario's on. One by default.
    executor : concurrent.futures.Executor or distributed.Client, optional
        Where the runs are done. Processes on this machine by default, one for each processor.
    out : path
        The folder of the data set. It is made if it does not exist.
    measure : str or callable, optional
        What is kept of each run: a table of `Results`, such as ``flows``, ``interfaces``, or ``groups``, the
        default; or a function that returns a row as a mapping. An executor of other processes must be able to
        import it.
    progress : bool or callable, optional
        As for `Scenario.run`.

    Returns
    -------
    Sweep
        The data set.

    Raises
    ------
    InputError
        If a value, path or seed is wrong, or the folder has another sweep.
    SweepError
        If it is not complete: a full disk, a broken part, workers that die again and again. What is
        finished is kept.
    """
    scenario = _arguments.instance("the scenario", scenario, Scenario, "a Scenario")
    folder = Path(_arguments.path("`out`", out))
    section = scenario._document.get("sweep", {})
    grid = _flat(section.get("grid", {})) if grid is None else grid
    seeds = section.get("seeds", 1) if seeds is None else seeds
    measure = section.get("measure", "groups") if measure is None else measure
    grid = _arguments.mapping("`grid`", grid, "a dict of lists by path")
    grid = {path: _values(path, values) for path, values in grid.items()}
    texts: dict[str, tuple[str, int]] = {}
    runs = _planned(scenario, grid, seeds, texts)
    with _locked(folder):
        _check_plan(folder, grid, measure)
        before = _finished(folder)
        left = [run for run in runs if run.id not in before]
        writer = _Writer(folder, _columns(grid), left)
        task = _Task(scenario._name, measure, _disciplines_of(scenario, grid))
        with shown(progress, len(runs), "sweep") as report:
            try:
                for run, rows in _results(left, texts, task, executor):
                    writer.add(run, rows)
                    if report is not None:
                        report(len(runs) - len(left) + writer.done)
            finally:
                writer.finish()
    return Sweep(folder, writer.done, len(runs) - len(left))


class _Task:
    """What a worker does for each run."""

    def __init__(self, name: str, measure: Measure, disciplines: tuple[type[Discipline], ...]) -> None:
        self.name, self.measure, self.disciplines = name, measure, disciplines

    def __call__(self, text: str, seed: int) -> Any:
        import pyarrow

        for discipline in self.disciplines:
            discipline._register()
        results = Results(_native.Scenario(text, self.name).run(seed, None, []))
        if isinstance(self.measure, str):
            return getattr(results, self.measure).to_arrow()
        row = self.measure(results)
        return pyarrow.table({name: [value] for name, value in row.items()})


def _flat(grid: Table, above: str = "") -> dict[str, Any]:
    """Return the lists of ``[sweep.grid]`` by path. A path may be one key, or tables below one another."""
    flat: dict[str, Any] = {}
    for key, value in grid.items():
        path = f"{above}{key}"
        flat.update(_flat(value, f"{path}.") if isinstance(value, dict) else {path: value})
    return flat


def _planned(
    scenario: Scenario,
    grid: Mapping[str, Sequence[Any]],
    seeds: int | Sequence[int],
    texts: dict[str, tuple[str, int]],
) -> list[_Run]:
    """Return all runs. What each one simulates, and its seed, goes to `texts`."""
    checked = chosen_seeds(seeds, scenario.seed)
    for path, values in grid.items():
        # A value that is wrong alone is found before the first run.
        for value in values:
            try:
                changed = scenario.with_values({path: value})
                _native.Scenario(changed._for_native(), changed._name)
            except InputError as error:
                error.add_note(f"with `{path}` = {value!r}")
                raise
    runs: dict[str, _Run] = {}
    for combination in itertools.product(*grid.values()):
        point = dict(zip(grid, combination, strict=True))
        text = scenario.with_values(point)._for_native()
        for seed in checked:
            run = _Run(_native.identity(text, seed), point, seed)
            runs[run.id] = run
            texts[run.id] = (text, seed)
    return list(runs.values())


def _disciplines_of(scenario: Scenario, grid: Mapping[str, Sequence[Any]]) -> tuple[type[Discipline], ...]:
    """Return the classes of Python that a worker must know: those whose names occur."""
    text = repr(scenario.to_dict()) + repr(grid)
    return tuple(known for known in Discipline._known.values() if repr(known.name) in text)


def _check_plan(folder: Path, grid: Mapping[str, Any], measure: Measure) -> None:
    """Check that the folder is for the same columns, and note them there."""
    kept = measure if isinstance(measure, str) else getattr(measure, "__qualname__", repr(measure))
    if not callable(measure) and measure not in _TABLES:
        raise InputError(f"there is no table `{measure}`; use one of {', '.join(_TABLES)}, or a function")
    plan = {"grid": sorted(grid), "measure": kept}
    file = folder / _PLAN
    if file.exists():
        try:
            found = json.loads(file.read_text(encoding="utf-8"))
        except ValueError as error:
            raise SweepError(f"{file} is broken: {error}; remove it, and the same call goes on") from None
        if found != plan:
            paths = ", ".join(found.get("grid", [])) or "nothing but seeds"
            raise InputError(
                f"{folder} has another sweep, of {paths} with the table `{found.get('measure')}`; "
                "choose another folder"
            )
        return
    draft = folder / f"{_PLAN}.draft"
    try:
        with _created(draft) as text:
            text.write(json.dumps(plan).encode())
        draft.replace(file)
    except OSError as error:
        raise _unusable(folder, error) from error


def _unusable(folder: Path, error: Exception) -> SweepError:
    return SweepError(
        f"the folder {folder} can't be used: {error}; make room, or choose another one; the same call goes on"
    )


def _broken(part: str, error: object) -> SweepError:
    return SweepError(
        f"{part} is broken or no part of a sweep: {error}; remove it, and the same call does its runs again"
    )


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Make the folder, and keep other sweeps out of it. Removes what a killed one left."""
    with ExitStack() as stack:
        try:
            lock = stack.enter_context(os.fdopen(_native.lock_file(str(folder / _LOCK)), "r+b"))
            if _is_locked(lock):
                raise SweepError(
                    f"another sweep is writing into {folder}; wait until it has ended, "
                    "or choose another folder"
                )
            for draft in folder.glob("_*.draft"):
                draft.unlink()
        except OSError as error:
            raise _unusable(folder, error) from error
        yield


def _created(path: Path) -> IO[bytes]:
    """Create a file. What had its name before is removed, and a link is not followed."""
    path.unlink(missing_ok=True)
    return path.open("xb")


def _is_locked(file: IO[bytes]) -> bool:
    """Lock the file as long as it is open. Returns whether another process has locked it."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        # Some file systems have no locks. Then nobody is kept away.
        return False
    return False


def _parts(folder: Path) -> list[str]:
    return sorted(str(part) for part in folder.glob("part-*.parquet"))


def _finished(folder: Path) -> set[str]:
    """Return the runs that the data set has."""
    with optional("a sweep"):
        import pyarrow
        import pyarrow.parquet

    finished: set[str] = set()
    for part in _parts(folder):
        try:
            metadata = pyarrow.parquet.read_schema(part).metadata or {}
            finished.update(json.loads(metadata[_RUNS]))
        except (OSError, ValueError, KeyError, pyarrow.ArrowException) as error:
            raise _broken(part, error) from error
    return finished


class _Writer:
    """Collects finished runs, and writes them as parts.

    Rows and parts are in the order of the runs, however they are finished.
    """

    def __init__(
        self, folder: Path, columns: Mapping[str, Callable[[Any], Any]], left: Sequence[_Run]
    ) -> None:
        self.folder, self.done = folder, 0
        self._columns = columns
        self._order = [run.id for run in left]
        self._waiting: dict[str, Any] = {}
        # The places of the first run that is not written, and of the first that is not finished.
        self._first = self._finished = 0

    def add(self, run: _Run, rows: Any) -> None:
        """Add a run, and write each part whose runs are all finished."""
        import pyarrow

        self.done += 1
        columns = {path: self._columns[path](value) for path, value in run.values.items()}
        added = {name: [value] * len(rows) for name, value in {**columns, "seed": run.seed}.items()}
        table = pyarrow.table(added)
        for name in rows.column_names:
            table = table.append_column(name, rows[name])
        self._waiting[run.id] = table
        while self._finished < len(self._order) and self._order[self._finished] in self._waiting:
            self._finished += 1
        while self._finished >= (end := self._first + min(max(self._first // _SHARE, 1), _LARGEST)):
            first, self._first = self._first, end
            self._write(first, self._order[first:end])

    def finish(self) -> None:
        """Write everything that is finished, as the last part."""
        ready = [run for run in self._order[self._first :] if run in self._waiting]
        if ready:
            self._write(self._order.index(ready[0]), ready)

    def _write(self, place: int, runs: list[str]) -> None:
        import pyarrow
        import pyarrow.parquet

        tables = [self._waiting.pop(run) for run in runs]
        table = pyarrow.concat_tables(tables, promote_options="permissive")
        table = table.replace_schema_metadata({_RUNS: json.dumps(runs)})
        # The first run is in no other part, so the name is new.
        # Its place comes first, because readers take the parts in the order of their names.
        part = self.folder / f"part-{place:08}-{runs[0]}.parquet"
        draft = self.folder / f"_{part.name}.draft"
        try:
            with _created(draft) as file:
                pyarrow.parquet.write_table(table, file)
            draft.replace(part)
        except OSError as error:
            # It makes room. Whether it can be removed changes nothing.
            with suppress(OSError):
                draft.unlink(missing_ok=True)
            raise SweepError(
                f"{part} can't be written: {error}; make room, and the same call does the last "
                f"{len(runs)} runs again"
            ) from error


def _values(path: str, values: object) -> list[Any]:
    listed = list(values) if isinstance(values, Iterable) and not isinstance(values, str | Mapping) else []
    if not listed:
        raise InputError(f"the values of `{path}` are {values!r}, but must be a list with at least one")
    return listed


def _columns(grid: Mapping[str, Sequence[Any]]) -> dict[str, Callable[[Any], Any]]:
    """Return for each path how its values become those of a column, which has one type in all parts."""
    columns: dict[str, Callable[[Any], Any]] = {}
    for path, values in grid.items():
        kinds = {type(clean(path, value)) for value in values}
        if kinds <= {int} or kinds <= {bool}:
            columns[path] = partial(clean, path)
        elif kinds <= {int, float}:
            columns[path] = float
        else:
            columns[path] = partial(_text, path)
    return columns


def _text(path: str, value: Any) -> str:
    """Return text as it is, and any other value as JSON, as ``fairgate sweep`` does."""
    plain = clean(path, value)
    if isinstance(plain, str):
        return plain
    return json.dumps(plain, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def _results(
    runs: Sequence[_Run], texts: Mapping[str, tuple[str, int]], task: _Task, executor: Any
) -> Iterator[tuple[_Run, Any]]:
    """Yield each run with its rows, as they are finished."""
    if executor is not None:
        # A client of Dask is no executor, but has one. It does the runs of lost workers again.
        own = executor if isinstance(executor, Executor) else executor.get_executor(pure=False)
        try:
            yield from _drive(own, runs, texts, task)
        except BrokenExecutor as error:
            raise SweepError(f"the executor broke: {error}; the same call goes on") from error
        return
    left, failures = list(runs), 0
    while left:
        workers = _Workers()
        with ProcessPoolExecutor(os.cpu_count(), mp_context=workers) as pool:
            try:
                for run, rows in _drive(pool, left, texts, task):
                    left = [other for other in left if other.id != run.id]
                    failures = 0
                    yield run, rows
            except BrokenExecutor as error:
                failures += 1
                if failures == _PATIENCE:
                    raise SweepError(
                        f"workers died {failures} times without finishing a run: {error}; look at the memory "
                        "of this machine; the same call goes on"
                    ) from error
            except BaseException:
                # Otherwise the end of the pool would wait for the runs under way.
                pool.shutdown(wait=False, cancel_futures=True)
                workers.end()
                raise


class _Workers(SpawnContext):
    """Makes the processes of a pool.

    A pool knows a process only after its start has returned, and an interrupt may come before.
    """

    def __init__(self) -> None:
        super().__init__()
        self._made: list[SpawnProcess] = []

    def Process(self, *words: Any, **named: Any) -> SpawnProcess:  # type: ignore[override]  # noqa: N802
        """Make a process, as ``multiprocessing.Process`` does."""
        process = SpawnProcess(*words, **named)
        self._made.append(process)
        return process

    def end(self) -> None:
        """End all that have started, at once."""
        started = [process for process in self._made if process.pid is not None]
        for process in started:
            process.terminate()
        for process in started:
            process.join()


def _drive(
    executor: Executor, runs: Sequence[_Run], texts: Mapping[str, tuple[str, int]], task: _Task
) -> Iterator[tuple[_Run, Any]]:
    done: queue.SimpleQueue[Future[Any]] = queue.SimpleQueue()
    waiting: dict[Future[Any], _Run] = {}
    rest = iter(runs)

    def submit(count: int) -> None:
        for run in itertools.islice(rest, count):
            future = executor.submit(task, *texts[run.id])
            waiting[future] = run
            future.add_done_callback(done.put)

    try:
        submit(_WAITING)
        while waiting:
            future = _next(done)
            run = waiting.pop(future)
            try:
                rows = future.result()
            except Exception as error:
                error.add_note(f"in the run with {run.values} and seed {run.seed}")
                raise
            yield run, rows
            submit(1)
    finally:
        for future in waiting:
            future.cancel()


def _next(done: queue.SimpleQueue[Future[Any]]) -> Future[Any]:
    """Wait for a finished run, and let Ctrl-C through."""
    while True:
        try:
            return done.get(timeout=0.2)
        except queue.Empty:
            continue
