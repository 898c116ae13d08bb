"""The environment: Gymnasium's own checks, what an episode adds up to, and what happens when a pass fails."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

gymnasium = pytest.importorskip("gymnasium")

import llvmlite.binding as llvm  # noqa: E402
from gymnasium.utils.env_checker import check_env  # noqa: E402

from bbo_problems.llvm import worker  # noqa: E402
from bbo_problems.llvm.ir import shipped  # noqa: E402
from bbo_problems.pass_order.gym_env import ID  # noqa: E402
from bbo_problems.pass_order.state import NEIGHBOURHOODS, STATE, State, described, neighbourhoods  # noqa: E402
from bbo_problems.xla_passes.census import (  # noqa: E402
    ACTIONS,
    OPCODES,
    PIPELINE,
    SLOTS,
)
from bbo_suite import UserError  # noqa: E402
from bbo_suite.supervised import LiveProblem  # noqa: E402

from ..xla_passes.xla_modules import CHAIN  # noqa: E402

pytestmark = pytest.mark.usefixtures("own_cache")


@pytest.fixture(scope="module")
def xla(tmp_path_factory):
    file = tmp_path_factory.mktemp("hlo") / "mine.hlo"
    file.write_text(CHAIN)
    return f"xla-passes:{file}"


@pytest.fixture(scope="module")
def env(xla):
    """One environment for most tests, because every new one starts a process that imports JAX."""
    return gymnasium.make(ID, problem=xla)


def act(env, name):
    return env.step(env.unwrapped.actions.index(name))


@pytest.mark.filterwarnings("ignore:.*observation space maximum value is infinity.*")
def test_the_checks_of_gymnasium_pass(env):
    check_env(env.unwrapped)
    check_env(gymnasium.make(ID, problem="llvm/bits").unwrapped)


def test_the_rewards_of_an_episode_add_up_to_its_savings(env):
    _, start = env.reset(seed=1)
    rewards = []
    for name in ("algsimp", "call-inliner", "cse", PIPELINE, "nothing"):
        _, reward, ended, cut, info = act(env, name)
        rewards.append(reward)
        assert ended == (name == "nothing") and not cut
    assert sum(rewards) == pytest.approx((start["cost"] - info["cost"]) / info["default"])
    assert info["passes"] == "algsimp,call-inliner,cse,pipeline"
    assert info["speedup"] == info["default"] / info["cost"]
    assert rewards[-1] == 0 and sum(rewards) > 0


def test_the_observation_has_kinds_surroundings_passes_cost_and_slots_left(env):
    before, info = env.reset()
    after, *_ = act(env, "call-inliner")
    assert before[OPCODES.index("call")] == pytest.approx(2 / 9) and after[OPCODES.index("call")] == 0
    kinds, rest = np.split(before, [len(OPCODES) + 1])
    assert kinds.sum() == pytest.approx(1) and rest[:NEIGHBOURHOODS].sum() == pytest.approx(2)
    ran = after[len(OPCODES) + 1 + NEIGHBOURHOODS : -2]
    assert {ACTIONS[1 + i]: share for i, share in enumerate(ran) if share} == {"call-inliner": 1 / SLOTS}
    assert after[-2:] == pytest.approx([7 / info["default"], 1 - 1 / SLOTS])
    assert env.reset()[0].tolist() == before.tolist()


def test_surroundings_tell_graphs_of_equal_kinds_apart():
    chain = [(0, "add", ["x"]), (1, "exp", [0]), (2, "add", [1])]
    other = [(0, "add", ["x"]), (1, "add", [0]), (2, "exp", [1])]
    assert described(chain)[0] == described(other)[0] == {"add": 2, "exp": 1}
    assert (neighbourhoods(chain) != neighbourhoods(other)).any()
    _, _, labels, edges = described(chain)
    assert labels[0] == labels[2] != labels[1] and edges.tolist() == [[0, 1], [1, 2]]
    renamed = [("a", "add", []), ("b", "exp", ["a"]), ("c", "add", ["b"])]
    assert (neighbourhoods(chain) == neighbourhoods(renamed)).all()


def test_several_programs_are_drawn_or_named():
    env = gymnasium.make(ID, problem=["llvm/bits", "llvm/tree"]).unwrapped
    drawn = {env.reset(seed=seed)[1]["problem"] for seed in range(8)}
    assert drawn == {"llvm/bits", "llvm/tree"}
    assert env.reset(options={"problem": "llvm/bits"})[1]["problem"] == "llvm/bits"
    _, reward, *_, info = act(env, "module")
    assert info["speedup"] == 1 and reward > 0, "the default"


def test_a_compiler_that_dies_ends_the_episode_takes_back_its_reward_and_the_next_one_runs(env, monkeypatch):
    env.reset()
    _, gained, *_ = act(env, PIPELINE)

    def dying(self, request):
        raise UserError("the process died of SIGABRT")

    with monkeypatch.context() as patched:
        patched.setattr(LiveProblem, "query", dying)
        observation, reward, ended, _, info = act(env, "cse")
    assert gained > 0 and reward == pytest.approx(-gained) and ended and "SIGABRT" in info["failure"]
    assert observation in env.observation_space and np.isfinite(reward)
    for child in Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split():
        os.kill(int(child), signal.SIGKILL)
    env.reset()
    assert act(env, PIPELINE)[1] == gained


def test_a_program_that_computes_something_else_ends_the_episode(monkeypatch):
    for initialize in (llvm.initialize_all_targets, llvm.initialize_all_asmprinters, llvm.initialize_native_asmparser):
        initialize()
    made = worker.Optimiser(shipped("bits"), shipped("bits"), "instructions", (1,))
    assert State(*made.answer((STATE, ("sroa",)), lambda *_: None)).kinds
    monkeypatch.setattr(made, "correct", (0,))
    with pytest.raises(ValueError, match="wrong_result"):
        made.answer((STATE, ("module",)), lambda *_: None)


def test_other_problems_are_refused():
    with pytest.raises(UserError, match="order of passes"):
        gymnasium.make(ID, problem="ordering/small-a")
    with pytest.raises(UserError, match="need the same actions"):
        gymnasium.make(ID, problem=["llvm/bits", "xla-passes/gpt2-l1"])


def test_the_id_is_enough_to_import_and_register_the_environment():
    code = f"import gymnasium; print(gymnasium.spec('{ID}'))"
    direct = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert direct.returncode, "if Gymnasium finds it by itself now, say so in the module"
    code = f"import gymnasium; gymnasium.make('bbo_problems.pass_order.gym_env:{ID}', problem='none')"
    named = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "UserError" in named.stderr and "none" in named.stderr
