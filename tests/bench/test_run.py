"""Benches run within their budget, and say what they did not do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from memlint.bench.collect import rule_benches
from memlint.bench.declare import Sizes, bench
from memlint.bench.experiment import Experiment, Found
from memlint.bench.lab import Forms, Lab, NotTheSame, OutOfTime
from memlint.bench.pair import Pair, Size, Weighed
from memlint.bench.plan import Plan
from memlint.bench.results import Answer, Outcome, Standing, Unit, Verdict
from memlint.bench.run import INTERRUPTED, OUT_OF_TIME, Benches, run_benches
from memlint.rule import Rule

FORMS = Forms("some", "one way", "another way")


def work(count: int) -> Callable[[list[int]], int]:
    return lambda numbers: sum(sum(numbers) for _ in range(count)) // count


def pair(as_is: int, alternative: int) -> Pair:
    return Pair(work(as_is), work(alternative), lambda: (list(range(2000)),), "2000 numbers")


class Slow(Rule):
    """Something is done four times."""

    code, name = "TST001", "slow"

    @bench(
        "adds up numbers",
        as_is="four times",
        alternative="once",
        needs=(),
        sizes=Sizes("times", quick=4, full=(4, 8)),
    )
    def bench_sum(self, size: Size) -> Pair:
        return pair(size.number, 1)

    @bench(
        "adds up numbers on a GPU",
        as_is="four times",
        alternative="once",
        needs=("cuda",),
        sizes=Sizes("times", quick=4, full=(4,)),
    )
    def bench_cuda(self, size: Size) -> Pair:
        raise AssertionError("what is missing is not run")


class Broken(Rule):
    """Its bench fails."""

    code, name = "TST002", "broken"

    @bench(
        "divides", as_is="by nothing", alternative="by one", needs=(),
        sizes=Sizes("times", quick=1, full=(1,)),
    )  # fmt: skip
    def bench(self, size: Size) -> Pair:
        return Pair(lambda: 1 // 0, lambda: 1, tuple, "nothing")


def outcomes(plan: Plan, *rules: type[Rule], experiments: tuple[Any, ...] = ()) -> list[Outcome]:
    return list(run_benches(Benches(tuple(rule_benches(rules)), experiments), plan))


def test_a_rule_says_which_of_its_benches_ran(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(
        __import__("memlint.bench.requirements", fromlist=["x"]).REQUIREMENTS,
        "cuda",
        lambda: "there is no GPU",
    )
    (outcome,) = outcomes(Plan(), Slow)
    assert [(row.variant, row.size, row.verdict) for row in outcome.rows] == [
        ("sum", 4, Verdict.SLOWER)
    ]
    assert outcome.notes == ("cuda not measured: there is no GPU",)
    assert outcome.seconds > 0


def test_a_full_run_is_at_all_sizes_and_one_size_can_be_asked_for() -> None:
    assert [row.size for row in outcomes(Plan(full=True), Slow)[0].rows] == [4, 8]
    assert [row.size for row in outcomes(Plan(full=True, size=3), Slow)[0].rows] == [3]


def test_what_one_bench_raises_does_not_end_the_others() -> None:
    broken, slow = outcomes(Plan(), Broken, Slow)
    assert broken.failed.startswith("ZeroDivisionError")
    assert slow.rows


def made(stated: Callable[[], Any]) -> type[Rule]:
    class Made(Rule):
        """Its bench is as it was given."""

        code, name = "TST009", "made"

        @bench("does", as_is="a", alternative="b", needs=(), sizes=Sizes("times", 1, (1,)))
        def bench(self, size: Size) -> Any:
            return stated()

    return Made


def leave() -> Any:
    raise SystemExit(3)


def complain() -> Any:
    raise RuntimeError("no room\nframe #1: c10::Error\nframe #2: main")


@pytest.mark.parametrize(
    ("rule", "told"),
    [
        (made(leave), "SystemExit: 3"),
        (made(complain), "RuntimeError: no room"),
    ],
)
def test_whatever_a_bench_does_is_said_in_a_line(rule: type[Rule], told: str) -> None:
    odd, slow = outcomes(Plan(), rule, Slow)
    assert odd.failed.startswith(told)
    assert "\n" not in odd.failed
    assert slow.rows


def test_a_spent_budget_is_said() -> None:
    first, second = outcomes(Plan(budget=1e-9), Slow, Broken)
    assert (first.skipped, second.skipped) == (OUT_OF_TIME, OUT_OF_TIME)


class Typed(Rule):
    """It has forms for two number types."""

    code, name = "TST003", "typed"

    @bench(
        "adds up numbers", as_is="twice", alternative="once", needs=(),
        sizes=Sizes("times", quick=2, full=(2,)), dtypes=("float32", "float64"),
    )  # fmt: skip
    def bench(self, size: Size) -> Pair:
        return pair(size.number, 1)


def test_what_has_no_form_for_a_number_type_is_skipped() -> None:
    typed, slow = outcomes(Plan(dtype="float16"), Typed, Slow)
    assert typed.skipped == "no form for float16, but for float32, float64"
    assert slow.skipped == "no form for float16: its number types cannot be chosen"
    (typed,) = outcomes(Plan(dtype="float64"), Typed)
    assert [row.dtype for row in typed.rows] == ["float64"]


class Quiet(Experiment):
    """Says which device it is run on."""

    name = "quiet"
    needs = ("torch",)

    def run(self, lab: Lab) -> Found:
        return Found(notes=(lab.device,))


def test_what_knows_no_other_device_than_the_cpu_is_not_run_for_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("memlint.bench.run.missing", lambda needs: "")
    found = outcomes(Plan(device="xpu"), Typed, experiments=(Curious(), Quiet()))
    assert [one.skipped for one in found] == [*["about the CPU, not about xpu"] * 2, ""]
    assert found[2].notes == ("xpu",)
    assert Plan().device_of(("torch", "cuda")) == "cuda"
    assert Plan(device="cuda:1").device_of(("cuda",)) == "cuda:1"


class Interrupted(Rule):
    """The user interrupts its second bench."""

    code, name = "TST004", "interrupted"

    @bench(
        "adds up numbers", as_is="twice", alternative="once", needs=(),
        sizes=Sizes("times", quick=2, full=(2,)),
    )  # fmt: skip
    def bench_first(self, size: Size) -> Pair:
        return pair(size.number, 1)

    @bench(
        "is interrupted", as_is="twice", alternative="once", needs=(),
        sizes=Sizes("times", quick=2, full=(2,)),
    )  # fmt: skip
    def bench_second(self, size: Size) -> Pair:
        raise KeyboardInterrupt


def test_what_was_measured_before_an_interruption_is_told() -> None:
    found: list[Outcome] = []
    benches = Benches(tuple(rule_benches([Interrupted, Typed])), (Curious(),))
    with pytest.raises(KeyboardInterrupt):
        found.extend(run_benches(benches, Plan()))
    assert [(one.name, len(one.rows), one.skipped) for one in found] == [
        ("interrupted", 1, INTERRUPTED),
        ("typed", 0, INTERRUPTED),
        ("curious", 0, INTERRUPTED),
    ]


def test_forms_that_give_different_results_are_no_bench() -> None:
    stated = Pair(lambda x: x, lambda x: x + 1, lambda: (1,), "one number")
    with pytest.raises(NotTheSame):
        Lab(Plan()).compare(stated, FORMS)


def test_results_in_the_operands_are_compared() -> None:
    def put(value: int) -> Callable[[list[int]], None]:
        return lambda numbers: numbers.__setitem__(0, value)

    same = Pair(put(1), put(1), lambda: ([0],), "a list")
    assert Lab(Plan()).compare(same, FORMS).rounds
    with pytest.raises(NotTheSame):
        Lab(Plan()).compare(Pair(put(1), put(2), lambda: ([0],), "a list"), FORMS)


def test_the_control_runs_the_good_form_alone() -> None:
    def never(numbers: list[int]) -> int:
        raise AssertionError("the bad form")

    stated = Pair(never, work(1), lambda: (list(range(100)),), "100 numbers")
    assert Lab(Plan(control=True)).compare(stated, FORMS).rounds


def test_bytes_are_compared_as_they_are() -> None:
    row = Lab(Plan()).compare(Weighed(lambda: 3000, lambda: 1000, "kept", "a list"), FORMS)
    assert (row.unit, row.ratio, row.verdict) == (Unit.BYTES, 3.0, Verdict.MORE)
    assert row.what == "a list: kept"


def test_what_was_taken_is_given_back_even_if_a_form_fails() -> None:
    given: list[bool] = []

    def fails() -> float:
        raise OSError("no memory")

    stated = Weighed(fails, lambda: 1.0, "kept", "a list", close=lambda: given.append(True))
    with pytest.raises(OSError, match="no memory"):
        Lab(Plan()).compare(stated, FORMS)
    assert given == [True]


class Curious(Experiment):
    """Times one form."""

    name = "curious"

    def run(self, lab: Lab) -> Found:
        numbers = list(range(1000))
        point = lab.point(1.0, lambda: work(1)(numbers), seconds=0.01)
        assert point.low <= point.y <= point.high
        answer = Answer("dram-latency", Standing.HOLDS, "70 ns")
        return Found(answers=(answer,), notes=("timed",))


def test_experiments_run_as_well() -> None:
    (outcome,) = outcomes(Plan(), experiments=(Curious(),))
    assert (outcome.name, outcome.title, outcome.notes) == (
        "curious",
        "Times one form.",
        ("timed",),
    )
    assert [one.standing for one in outcome.answers] == [Standing.HOLDS]


def test_a_control_answers_nothing() -> None:
    (outcome,) = outcomes(Plan(control=True), experiments=(Curious(),))
    assert [one.standing for one in outcome.answers] == [Standing.UNMEASURED]


def test_points_of_a_curve_are_of_one_part() -> None:
    whole = Lab(Plan()).point(8, lambda: sum(range(20_000)), seconds=0.01)
    part = Lab(Plan()).point(8, lambda: sum(range(20_000)), seconds=0.01, parts=1000)
    assert (whole.x, part.x) == (8, 8)
    assert whole.low <= whole.y <= whole.high
    assert part.high < whole.low


def test_one_sitting_has_fewer_rounds() -> None:
    lab = Lab(Plan(budget=60.0))
    lab.begin(6000)
    made: list[int] = []

    def operands() -> tuple[list[int]]:
        made.append(1)
        return (list(range(1000)),)

    stated = Pair(work(1), work(1), operands, "1000 numbers", rotate=False, comparable=False)
    lab.compare(stated, FORMS, sittings=1)
    assert len(made) == 1


def test_on_a_slow_machine_one_sitting_has_to_do() -> None:
    made: list[float] = []
    now = [0.0]

    def operands() -> tuple[list[int]]:
        made.append(now[0])
        now[0] += 100.0
        return ([1],)

    stated = Pair(sum, sum, operands, "a list", rotate=False, comparable=False)
    assert Lab(Plan(), clock=lambda: now[0]).compare(stated, FORMS).rounds
    assert len(made) == 1


def test_a_name_is_not_taken_for_a_tuple_of_names() -> None:
    given: Any = "numpy"
    with pytest.raises(TypeError, match="needs is a tuple of names, not 'numpy'"):
        bench("adds", as_is="", alternative="", needs=given, sizes=Sizes("times", 1, (1,)))


def test_a_bench_that_returns_something_else_is_told_so() -> None:
    class Odd(Rule):
        """Odd."""

        code, name = "TST009", "odd"

        @bench("adds", as_is="", alternative="", needs=(), sizes=Sizes("", quick=1, full=(1,)))
        def bench(self, size: Size) -> int:
            return 3

    (outcome,) = outcomes(Plan(), Odd)
    assert outcome.failed == "TypeError: a bench returns a Pair or a Weighed, not 3"


def test_on_a_slow_machine_bytes_are_taken_once() -> None:
    now = [0.0]

    def slow() -> float:
        now[0] += 100.0
        return 8.0

    stated = Weighed(slow, slow, "kept", "a list")
    assert Lab(Plan(), clock=lambda: now[0]).compare(stated, FORMS).rounds == 1
    assert Lab(Plan()).compare(Weighed(lambda: 8, lambda: 8, "kept", ""), FORMS).rounds > 1


def test_a_spent_budget_is_noticed_before_operands_are_made() -> None:
    now = [0.0]
    lab = Lab(Plan(budget=5.0), clock=lambda: now[0])
    lab.require_time()
    now[0] = 5.0
    with pytest.raises(OutOfTime):
        lab.require_time()
    with pytest.raises(OutOfTime):
        _ = lab.seconds
