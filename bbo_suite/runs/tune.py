"""Search for a strategy's best options on training problems, and compare them with the defaults on fresh seeds."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin, get_type_hints

from ..core.libraries import quiet_optuna
from ..core.options import identifying
from ..errors import UserError
from ..files.reading import read_bounded
from ..files.writing import disk_errors, write_json
from ..registry import Registry
from .runner import Display, run_study
from .study_plan import StudyPlan

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution

WIDE = 100.0
"""A range whose ends differ by this factor or more is searched on a logarithmic scale."""
REACH = 10.0
"""A range that reaches far beyond the default is cut to the default divided and multiplied by this: options accept far
larger values than make sense; a population of a hundred thousand, for example, is mostly slow."""
Gains = dict[str, float]
"""The mean log speedup over the seeds, by problem."""
_LEAST_REFERENCE, _LARGEST_SPEEDUP = 0.01, 1e300


@dataclass(frozen=True)
class Dimension:
    """One option: a choice among values, or a number in a closed range.

    A number with a wide range is searched on a logarithmic scale. Where the range begins at 0, which often means
    "automatic", one is added before the logarithm is taken.

    Attributes:
      choices: the values to choose from; empty for a number.
      low, high: the ends of a number's range.
      whole: whether the number is an integer.
    """

    name: str
    choices: tuple[Any, ...] = ()
    low: float = 0.0
    high: float = 0.0
    whole: bool = False

    @property
    def _shift(self) -> float | None:
        """The number that is added before the logarithm is taken; None for a linear scale."""
        shift = 0.0 if self.low > 0 else 1.0
        return shift if self.low >= 0 and (self.high + shift) / (self.low + shift) >= WIDE else None

    def distribution(self) -> BaseDistribution:
        """Return Optuna's distribution of the encoded values."""
        from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

        if self.choices:
            return CategoricalDistribution(self.choices)
        if self.whole and self._shift is None:
            return IntDistribution(int(self.low), int(self.high))
        return FloatDistribution(self.encode(self.low), self.encode(self.high))

    def encode(self, value: Any) -> Any:  # noqa: ANN401 - whatever the option holds
        """Return the value as it is searched: numbers may be on a logarithmic scale."""
        return value if self.choices or self._shift is None else math.log(value + self._shift)

    def decode(self, encoded: Any) -> Any:  # noqa: ANN401
        """Return the option's value from what `encode` returned, with four digits, as people would write it."""
        if self.choices:
            return encoded
        value = encoded if self._shift is None else math.exp(encoded) - self._shift
        value = min(max(value, self.low), self.high)
        return round(value) if self.whole else float(f"{value:.4g}")


def search_space(options: type, owner: str) -> list[Dimension]:
    """Return a dimension for every option with a finite number of values or a closed range.

    Raises:
      UserError: there is no such option.
    """
    types = get_type_hints(options)
    fields = [_dimension(field, types[field.name]) for field in dataclasses.fields(options)]
    dimensions = [dimension for dimension in fields if dimension is not None]
    if not dimensions:
        what = "no options" if not fields else "no option with a finite number of values or a closed range"
        raise UserError(f"{owner} has {what}, so there is nothing to tune")
    return dimensions


def _dimension(field: dataclasses.Field[Any], kind: Any) -> Dimension | None:  # noqa: ANN401 - a class or a form of `typing`
    if kind is bool:
        return Dimension(field.name, (False, True))
    if get_origin(kind) is Literal:
        return Dimension(field.name, get_args(kind))
    low, high = field.metadata.get("low", -math.inf), field.metadata.get("high", math.inf)
    if kind not in (int, float) or not (math.isfinite(low) and math.isfinite(high)) or low == high:
        return None
    default = field.default
    if low >= 0 and isinstance(default, int | float) and 0 < default < high / REACH:
        low, high = max(low, default / REACH), default * REACH
    return Dimension(field.name, (), math.ceil(low) if kind is int else low, high, kind is int)


@dataclass(frozen=True)
class Tuning:
    """What is tuned, on which problems, and with how much work.

    Attributes:
      strategy: its id.
      problems: ids of the training problems; leave out the problems that are reported later.
      trials: settings to try, including the shipped defaults.
      budget, batch: of each run.
      repeats: number of seeds for every setting, from `seed` on; the final comparison uses the next `2 * repeats`.
      jobs: number of runs at the same time; None for one per core.
      display: shows the progress of the runs with the shipped and the best options.
      quiet: print no line for each setting.
    """

    name: str
    results: Path
    registry: Registry
    strategy: str
    problems: tuple[str, ...]
    trials: int = 30
    budget: int = 2000
    repeats: int = 2
    seed: int = 0
    batch: int = 100
    jobs: int | None = None
    display: Display = field(default_factory=Display)
    quiet: bool = False

    def gains(self, options: Any, seed: int, repeats: int, display: Display) -> Gains:  # noqa: ANN401 - its own
        """Run the strategy with some options; stored runs are not repeated.

        Raises:
          UserError: a run failed.
          KeyboardInterrupt: stopped by Ctrl-C; everything is stored.
        """
        digest = hashlib.sha256(json.dumps(identifying(options), sort_keys=True).encode()).hexdigest()[:8]
        chosen = {self.strategy: options}
        folder = self.results / self.name
        runs = (repeats, seed, self.budget, self.batch)
        report = run_study(
            StudyPlan(f"options-{digest}", folder, self.registry, self.problems, chosen, *runs), self.jobs, display
        )
        if report.stopped:
            print(f"stopped; everything is stored in {folder}: run the same command to resume", file=sys.stderr)
            raise KeyboardInterrupt
        if report.errors:
            raise UserError("; ".join(report.errors))
        return _mean_gains(report.summaries)


def _mean_gains(summaries: Sequence[Mapping[str, Any]]) -> Gains:
    by_problem: dict[str, list[float]] = {}
    for run in summaries:
        # All failed: as bad as e times the default. A cost of 0 is infinitely good, of which there is no mean.
        gain = math.log(min(run["speedup"], _LARGEST_SPEEDUP)) if run["speedup"] else -1.0
        by_problem.setdefault(run["problem"], []).append(gain)
    return {problem: sum(gains) / len(gains) for problem, gains in by_problem.items()}


def score(gains: Gains, reference: Gains) -> float:
    """Return the mean over problems of the gain relative to the reference's gain; 1 is as good as the reference.

    A gain is the logarithm of the speedup. Relative gains give a problem with little to gain the same weight as one
    with a lot. Where the reference gains less than 1 %, differences are divided by 1 %: relative to a gain close to
    zero, any difference would be huge.
    """
    relative = ((gain - reference[p]) / max(reference[p], _LEAST_REFERENCE) for p, gain in gains.items())
    return 1 + sum(relative) / len(gains)


@dataclass(frozen=True)
class TuningResult:
    """The best setting found, compared with the shipped defaults.

    Attributes:
      options: the best setting, an instance of the strategy's `Options`.
      score: its score on the seeds of the search.
      fresh_score: its score on seeds that the search did not use.
      shipped, tuned: the gains of the shipped defaults and of the setting on the fresh seeds.
    """

    options: Any
    score: float
    fresh_score: float
    shipped: Gains
    tuned: Gains


def tune(plan: Tuning) -> TuningResult:
    """Search with Optuna's TPE sampler, seeded, starting from the shipped defaults.

    Only the runs are stored: the same call again replays the search on the stored runs and continues it.

    Raises:
      UserError: the strategy has no option that can be searched, an argument is wrong, or the defaults fail.
    """
    shipped = plan.registry.strategy(plan.strategy).Options()
    dimensions = search_space(type(shipped), f"strategy {plan.strategy}")
    if not plan.problems:
        raise UserError("no training problem is given; use --problem or --problems-from")
    if plan.trials < 2:
        raise UserError(f"trials must be 2 or more, not {plan.trials}: the first trial tests the shipped defaults")
    reference = plan.gains(shipped, plan.seed, plan.repeats, plan.display)
    options, best = _searched(plan, shipped, dimensions, reference)
    fresh = (plan.seed + plan.repeats, 2 * plan.repeats)
    before, after = (plan.gains(each, *fresh, plan.display) for each in (shipped, options))
    return TuningResult(options, best, score(after, before), before, after)


def _searched(plan: Tuning, shipped: Any, dimensions: Sequence[Dimension], reference: Gains) -> tuple[Any, float]:  # noqa: ANN401
    import optuna

    distributions = {dimension.name: dimension.distribution() for dimension in dimensions}
    best, options = 1.0, shipped
    with quiet_optuna():
        sampler = optuna.samplers.TPESampler(seed=plan.seed, n_startup_trials=8)
        study = optuna.create_study(sampler=sampler, direction="maximize")
        start = {dimension.name: dimension.encode(getattr(shipped, dimension.name)) for dimension in dimensions}
        study.add_trial(optuna.trial.create_trial(params=start, distributions=distributions, value=best))
        for number in range(1, plan.trials):
            trial = study.ask(distributions)
            setting = {dimension.name: dimension.decode(trial.params[dimension.name]) for dimension in dimensions}
            tried = dataclasses.replace(shipped, **setting)
            reached = _tried(plan, tried, reference)
            study.tell(trial, reached, state=optuna.trial.TrialState.FAIL if reached is None else None)
            best, options = max((best, options), (reached or -math.inf, tried), key=lambda pair: pair[0])
            if not plan.quiet:
                now = "failed" if reached is None else f"{reached:.4f}"
                line = f"setting {number + 1}/{plan.trials}: {now}, best {best:.4f}; {option_text(setting)}"
                print(line, file=sys.stderr)
    return options, best


def _tried(plan: Tuning, options: Any, reference: Gains) -> float | None:  # noqa: ANN401
    """Return a setting's score, or None if a run fails: the defaults work, so the setting is at fault."""
    try:
        return score(plan.gains(options, plan.seed, plan.repeats, Display()), reference)
    except UserError as error:
        print(f"left out: {error}", file=sys.stderr)
        return None


def option_text(setting: Mapping[str, Any]) -> str:
    """Return a setting as text for the command line."""
    return " ".join(f"{name}={value:.6g}" if isinstance(value, float) else f"{name}={value}"
                    for name, value in setting.items())  # fmt: skip


def changed(result: TuningResult) -> dict[str, Any]:
    """Return the options that differ from the shipped defaults."""
    shipped = dataclasses.asdict(type(result.options)())
    return {name: value for name, value in dataclasses.asdict(result.options).items() if value != shipped[name]}


def facts(plan: Tuning, result: TuningResult) -> dict[str, Any]:
    """Return the settings of the search and its result."""
    about = {"strategy": plan.strategy, "problems": plan.problems, "trials": plan.trials, "budget": plan.budget}
    about |= {"batch": plan.batch, "repeats": plan.repeats, "seed": plan.seed}
    return {**about, **dataclasses.asdict(result)}


def write(plan: Tuning, result: TuningResult, file: Path) -> None:
    """Write the settings of the search and its result as JSON."""
    with disk_errors(file):
        file.parent.mkdir(parents=True, exist_ok=True)
        write_json(file, facts(plan, result))


_LARGEST = 1 << 26
"""Largest list of problems in bytes."""


def read_problems(file: Path | None) -> list[str]:
    """Return the problem ids in a file, one per line. `#` starts a comment at the start of a line or after a space.

    Raises:
      UserError: the file cannot be read.
    """
    if file is None:
        return []
    try:
        text = read_bounded(file, _LARGEST).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UserError(f"cannot read the problems in {file}: it is not a text file") from None
    except (OSError, ValueError) as error:
        raise UserError(f"cannot read the problems in {file}: {getattr(error, 'strerror', None) or error}") from None
    lines = [re.sub(r"(^|\s)#.*", "", line).strip() for line in text.splitlines()]
    return [line for line in lines if line]


def default_name(strategy: str, problems: Sequence[str], *settings: int) -> str:
    """Return a folder name that depends on all settings but the number of trials, so that trials can be added."""
    digest = hashlib.sha256(json.dumps([strategy, sorted(problems), settings]).encode()).hexdigest()[:6]
    return f"tune-{re.sub('[^A-Za-z0-9]+', '-', strategy).strip('-')}-{digest}"
