"""A gymnasium environment: an agent sets the parameters of a queue in a running simulation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from . import _arguments, _native
from ._optional import optional
from .errors import InputError
from .scenario import Scenario, _set_at
from .trees import Tree

with optional("FairgateEnv"):
    import gymnasium
    import numpy as np
    from gymnasium import spaces

__all__ = ["FairgateEnv"]

_NAME = "tree"
# What is observed, with the largest value.
_OBSERVED = ("delay_ms", "goodput_mbps", "drop_share", "mark_share", "backlog_packets")
_SEEDS = 1 << 31


class FairgateEnv(gymnasium.Env[np.ndarray, np.ndarray]):
    """A queue in a running simulation, whose parameters an agent sets at each step.

    An action is a vector from -1 to 1: a value for each of `actions`, from the least to the greatest one, on
    a logarithmic scale if the least is above 0. An observation is what left the queue in the step: the mean
    delay in the queue (ms), the goodput (Mbit/s), the shares of packets dropped and marked, and the packets
    queued at the end. The reward is ``log2(1 + goodput) - delay_weight * log2(1 + delay)``.

    Parameters
    ----------
    scenario : Scenario
        The network and its traffic. An episode is its duration.
    interface : str
        ``a->b``, whose queue the agent controls.
    queue : str
        The name of this interface's queue in the scenario.
    actions : mapping of str to (least, most, unit)
        The parameters by their paths in the tree: ``{"inner.target": (0.1, 100, "ms"), "rate": (5, 20,
        "mbit")}``.
    step : float
        The length of a step, in seconds.
    delay_weight : float
        The weight of the delay in the reward.
    render_mode : str, optional
        ``ansi``: `render` returns a line about the last step.

    Examples
    --------
    >>> from fairgate import Flow, Link
    >>> scenario = Scenario(
    ...     "2s",
    ...     queues={"wan": Tree("codel")},
    ...     links=[Link("server", "home", rate="10mbit", delay="10ms", queue_a="wan")],
    ...     flows=[Flow("download", "server", "home", tcp={})],
    ... )
    >>> env = FairgateEnv(scenario, "server->home", "wan", {"target": (1, 50, "ms")}, step=0.5)
    >>> observation, info = env.reset(seed=1)
    >>> observation, reward, terminated, truncated, info = env.step(np.array([0.0], dtype=np.float32))
    >>> sorted(info)
    ['backlog_packets', 'delay_ms', 'drop_share', 'goodput_mbps', 'mark_share', 'settings', 'time']
    """

    metadata: ClassVar[dict[str, Any]] = {  # type: ignore[misc]
        "render_modes": ["ansi"],
        "render_fps": 10,
    }

    def __init__(
        self,
        scenario: Scenario,
        interface: str,
        queue: str,
        actions: Mapping[str, tuple[float, float, str]],
        *,
        step: float = 0.1,
        delay_weight: float = 1.0,
        render_mode: str | None = None,
    ) -> None:
        super().__init__()
        scenario = _arguments.instance("the scenario", scenario, Scenario, "a Scenario")
        actions = _arguments.mapping("`actions`", actions, "a dict: the path of each parameter and its range")
        for name, value in (("`step`", step), ("`delay_weight`", delay_weight)):
            _arguments.finite(name, value)
        if queue not in scenario.queues:
            known = ", ".join(scenario.queues) or "none"
            raise InputError(f"there is no queue `{queue}` in the scenario; there are {known}")
        if not actions:
            raise InputError("there is no action; give at least one parameter with its range and unit")
        for path, bounds in actions.items():
            if len(_arguments.listed(f"the range of `{path}`", bounds)) != 3:
                raise InputError(f"the range of `{path}` is {bounds!r}, but must be (least, most, unit)")
            least, most, unit = bounds
            _arguments.text(f"the unit of `{path}`", unit)
            for value in (least, most):
                _arguments.finite(f"an end of the range of `{path}`", value)
            if not 0 <= least < most:
                raise InputError(f"the range of `{path}` is from {least} to {most}, but must rise from 0 on")
        self._native = _native.Scenario(scenario._for_native(), scenario._name)
        whole = self._native.duration_ns
        if not 0 < step * 1e9 <= whole:
            raise InputError(
                f"a step is {step} s, but must be above 0 and at most the duration, {whole / 1e9} s"
            )
        self.render_mode = render_mode
        self._tree = scenario.queues[queue]
        self._interface, self._actions = interface, dict(actions)
        self._step_ns, self._whole, self._weight = round(step * 1e9), whole, delay_weight
        self._steps: _native.Steps | None = None
        self._settings: dict[str, str] = {}
        self._last: dict[str, float] = dict.fromkeys(_OBSERVED, 0.0)
        # Both ends of every range, so that an agent meets no parameter that is refused.
        for end in (-1.0, 1.0):
            self._configured(np.full(len(actions), end))
        _native.Steps(self._native, 1, interface)
        self.action_space = spaces.Box(-1.0, 1.0, (len(actions),), np.float32)
        # No packet waits longer than the episode. No link here is faster than 1 Tbit/s.
        high = np.array([whole / 1e6, 1e6, 1.0, 1.0, 2.0**31], dtype=np.float32)
        self.observation_space = spaces.Box(np.zeros_like(high), high, dtype=np.float32)

    def _configured(self, action: np.ndarray) -> Tree:
        """Return the tree with the parameters of an action."""
        table = self._tree.to_dict()
        self._settings = {}
        for share, (path, (least, most, unit)) in zip((action + 1) / 2, self._actions.items(), strict=True):
            value = least * (most / least) ** share if least > 0 else most * share
            # tc's language has whole numbers of small units.
            self._settings[path] = _quantity(float(value), unit)
            _set_at(table, path, self._settings[path])
        return Tree.from_dict(table)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Begin an episode. The seed decides all of it; without one, each episode has its own.

        Returns
        -------
        observation, info
            All zeros, and the same by name.
        """
        del options  # There are none.
        super().reset(seed=seed)
        episode = int(self.np_random.integers(_SEEDS))
        self._steps = _native.Steps(self._native, episode, self._interface)
        self._counted = self._steps.statistics()
        self._last = dict.fromkeys(_OBSERVED, 0.0)
        return self._observation(), self._info()

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Set parameters, and simulate a step.

        Returns
        -------
        observation, reward, terminated, truncated, info
            As gymnasium has them. An episode is truncated at the end of the scenario, and never terminated.
        """
        if self._steps is None:
            raise gymnasium.error.ResetNeeded("call reset before step")
        if not self.action_space.contains(np.asarray(action, dtype=np.float32)):
            raise InputError(
                f"the action is {action!r}, but must be {len(self._actions)} numbers from -1 to 1"
            )
        self._steps.configure(self._configured(np.asarray(action, dtype=float)).to_toml(_NAME), _NAME)
        until = min(self._steps.now + self._step_ns, self._whole)
        goes_on = self._steps.run_until(until)
        before, self._counted = self._counted, self._steps.statistics()
        enqueued, sent, sent_bytes, dropped = (
            self._counted[0][0] - before[0][0],
            self._counted[1][0] - before[1][0],
            self._counted[1][1] - before[1][1],
            self._counted[2][0] - before[2][0],
        )
        self._last = {
            "delay_ms": (self._counted[5] - before[5]) / sent / 1e6 if sent else 0.0,
            "goodput_mbps": sent_bytes * 8e3 / self._step_ns,
            "drop_share": min(dropped / enqueued, 1.0) if enqueued else 0.0,
            "mark_share": min((self._counted[4] - before[4]) / sent, 1.0) if sent else 0.0,
            "backlog_packets": float(self._counted[3][0]),
        }
        truncated = not goes_on or self._steps.now >= self._whole
        reward = float(
            np.log2(1 + self._last["goodput_mbps"]) - self._weight * np.log2(1 + self._last["delay_ms"])
        )
        info = self._info()
        if truncated:
            self._steps = None
        return self._observation(), reward, False, truncated, info

    def _observation(self) -> np.ndarray:
        return np.array([self._last[name] for name in _OBSERVED], dtype=np.float32)

    def _info(self) -> dict[str, Any]:
        now = 0 if self._steps is None else self._steps.now
        return {**self._last, "time": now / 1e9, "settings": dict(self._settings)}

    def render(self) -> str | None:
        """Return a line about the last step, if the mode is ``ansi``."""
        if self.render_mode != "ansi":
            return None
        return ", ".join(f"{name} {value:.3g}" for name, value in self._last.items())


_SMALLER = {
    "s": ("ns", 1e9),
    "ms": ("ns", 1e6),
    "us": ("ns", 1e3),
    "mbit": ("bit", 1e6),
    "kbit": ("bit", 1e3),
}


def _quantity(value: float, unit: str) -> Any:
    if unit == "":
        return round(value)
    smaller, factor = _SMALLER.get(unit, (unit, 1.0))
    return f"{round(value * factor)}{smaller}"
