"""The environment: Gymnasium's own checks, what an episode adds up to, and what happens when a pass fails."""

import subprocess
import sys

import numpy as np
import pytest

gymnasium = pytest.importorskip("gymnasium")

from gymnasium.utils.env_checker import check_env  # noqa: E402
from xla_modules import BFLOAT, CHAIN  # noqa: E402

from bbo_problems.xla_passes.actions import ACTIONS, LOWERINGS, PIPELINE, SLOTS  # noqa: E402
from bbo_problems.xla_passes.gym_env import ID  # noqa: E402
from bbo_problems.xla_passes.opcodes import OPCODES  # noqa: E402
from bbo_suite import UserError  # noqa: E402


def environment(tmp_path, text=CHAIN):
    file = tmp_path / "mine.hlo"
    file.write_text(text)
    return gymnasium.make(ID, problem=f"xla-passes:{file}")


def act(env, name):
    return env.step(ACTIONS.index(name))


@pytest.mark.filterwarnings("ignore:.*observation space maximum value is infinity.*")
def test_the_checks_of_gymnasium_pass(tmp_path):
    check_env(environment(tmp_path).unwrapped)


def test_the_rewards_of_an_episode_add_up_to_its_savings(tmp_path):
    env = environment(tmp_path, BFLOAT)
    _, start = env.reset(seed=1)
    rewards = []
    for name in ("algsimp", "cse", PIPELINE, "nothing"):
        _, reward, ended, cut, info = act(env, name)
        rewards.append(reward)
        assert ended == (name == "nothing") and not cut
    assert sum(rewards) == pytest.approx((start["operations"] - info["operations"]) / info["default"])
    assert info["passes"] == "algsimp,cse,pipeline"
    assert info["speedup"] == info["default"] / info["operations"]
    assert rewards[-1] == 0 and sum(rewards) > 0


def test_the_observation_has_kinds_lowerings_cost_and_remaining_passes(tmp_path):
    env = environment(tmp_path)
    before, _ = env.reset()
    after, *_ = act(env, "call-inliner")
    assert before[OPCODES.index("call")] == pytest.approx(2 / 9) and after[OPCODES.index("call")] == 0
    assert before[: len(OPCODES) + 1].sum() == pytest.approx(1) and after[-1] == pytest.approx(1 - 1 / SLOTS)
    lowered, *_ = act(env, "dot_decomposer")
    flags = slice(len(OPCODES) + 1, -2)
    assert lowered[flags].tolist() == [name == "dot_decomposer" for name in LOWERINGS]
    assert env.reset()[0].tolist() == before.tolist()


def test_an_episode_ends_with_the_last_slot(tmp_path):
    env = environment(tmp_path)
    env.reset()
    ended = [act(env, "dce")[2] for _ in range(SLOTS)]
    assert ended == [False] * (SLOTS - 1) + [True]


def test_a_pass_that_fails_ends_the_episode_and_takes_back_its_reward(tmp_path, monkeypatch):
    env = environment(tmp_path)
    env.reset()
    _, gained, *_ = act(env, PIPELINE)
    inner = env.unwrapped

    def failing(passes):
        raise UserError("the process died of SIGABRT")

    monkeypatch.setattr(inner, "_measured", failing)
    observation, reward, ended, _, info = act(env, "cse")
    assert gained > 0 and reward == pytest.approx(-gained) and ended and "SIGABRT" in info["failure"]
    assert observation in env.observation_space and np.isfinite(reward)


def test_other_problems_are_refused():
    with pytest.raises(UserError, match="ordering/small-a is not a problem of the family xla-passes"):
        gymnasium.make(ID, problem="ordering/small-a")


def test_the_id_is_enough_to_import_and_register_the_environment():
    code = f"import gymnasium; print(gymnasium.spec('{ID}'))"
    direct = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert direct.returncode, "if Gymnasium finds it by itself now, say so in the module"
    code = f"import gymnasium; gymnasium.make('bbo_problems.xla_passes.gym_env:{ID}', problem='none')"
    named = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "UserError" in named.stderr and "none" in named.stderr
