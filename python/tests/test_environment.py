"""The gymnasium environment passes gymnasium's own checker, and its actions have effects."""

from __future__ import annotations

import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import fairgate as fg
from fairgate import _native
from fairgate.environment import FairgateEnv


def make(**changes: object) -> FairgateEnv:
    scenario = fg.Scenario(
        "3s",
        queues={"wan": fg.Tree.parse("tbf rate=10mbit burst=5kb / codel target=5ms")},
        links=[fg.Link("server", "home", rate="50mbit", delay="10ms", queue_a="wan")],
        flows=[fg.Flow("downloads", "server", "home", count=2, tcp={})],
    )
    actions = {"rate": (1.0, 40.0, "mbit"), "inner.target": (1.0, 50.0, "ms")}
    given = {"interface": "server->home", "queue": "wan", "actions": actions, "step": 0.25, **changes}
    return FairgateEnv(scenario, **given)  # type: ignore[arg-type]


def episode(env: FairgateEnv, action: list[float], seed: int = 5) -> list[np.ndarray]:
    env.reset(seed=seed)
    seen, truncated = [], False
    while not truncated:
        observation, _, terminated, truncated, _ = env.step(np.array(action, dtype=np.float32))
        assert not terminated
        seen.append(observation)
    return seen


def test_gymnasiums_checker_passes_it() -> None:
    # Its check of rendering needs an environment that is registered under a name.
    check_env(make(), skip_render_check=True)


def test_actions_have_effects() -> None:
    env = make(render_mode="ansi")
    fast, slow = episode(env, [1.0, 0.0]), episode(env, [-1.0, 0.0])
    assert len(fast) == len(slow) == 12
    assert fast[-1][1] > 5 * slow[-1][1]
    assert np.mean([o[1] for o in slow[4:]]) == pytest.approx(1.0, rel=0.15)
    lax = episode(env, [0.0, 1.0])
    strict = episode(env, [0.0, -1.0])
    assert np.mean([o[0] for o in lax[4:]]) > np.mean([o[0] for o in strict[4:]])
    assert "goodput" in (env.render() or "")


def test_an_episode_depends_on_its_seed_alone() -> None:
    one, two = (np.array(episode(make(), [0.3, -0.2], seed=9)) for _ in range(2))
    assert np.array_equal(one, two)
    env = make()
    env.reset(seed=1)
    first = env.np_random.integers(1 << 20)
    env.reset()
    assert first != env.np_random.integers(1 << 20)


@pytest.mark.parametrize(
    ("changes", "part"),
    [
        ({"queue": "lan"}, "no queue `lan`"),
        ({"interface": "home->moon"}, "no interface `home->moon`"),
        ({"actions": {}}, "no action"),
        ({"actions": {"rate": (5, 5, "mbit")}}, "must rise"),
        ({"actions": {"inner.targte": (1, 5, "ms")}}, "did you mean `target`"),
        ({"step": 0}, "above 0"),
        ({"step": float("nan")}, "`step` is nan"),
        ({"delay_weight": "much"}, "`delay_weight` is 'much'"),
        ({"actions": {"rate": (5, 9)}}, "(least, most, unit)"),
        ({"actions": {"rate": ("5", 9, "mbit")}}, "range of `rate` is '5'"),
    ],
)
def test_wrong_arguments(changes: dict[str, object], part: str) -> None:
    with pytest.raises(fg.InputError) as caught:
        make(**changes)
    assert part in str(caught.value)


def test_wrong_actions() -> None:
    env = make()
    env.reset(seed=1)
    with pytest.raises(fg.InputError, match="from -1 to 1"):
        env.step(np.array([2.0, 0.0], dtype=np.float32))


def test_pieces_are_the_whole() -> None:
    """A simulation that is run piece by piece has the counts of one that is run at once."""
    scenario = fg.Scenario(
        "2s",
        queues={"wan": fg.Tree("codel")},
        links=[fg.Link("server", "home", rate="5mbit", delay="10ms", queue_a="wan")],
        flows=[fg.Flow("downloads", "server", "home", count=2, tcp={})],
    )
    native = _native.Scenario(scenario.to_toml(), "python")
    steps = _native.Steps(native, 3, "server->home")
    until = 0
    while steps.run_until(until := until + 7_000_000):
        assert until <= steps.now
    whole = scenario.run(3)
    rows = {row["interface"]: row for row in whole.interfaces.rows()}
    enqueued, dequeued, dropped, backlog, _, _ = steps.statistics()
    assert enqueued[0] == rows["server->home"]["enqueued"]
    assert dequeued[0] == rows["server->home"]["transmitted"]
    assert dropped[0] == rows["server->home"]["dropped"]
    assert enqueued[0] == dequeued[0] + dropped[0] + backlog[0]
