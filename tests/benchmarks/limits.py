"""The promises about speed and memory, each beside what was measured."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tests.benchmarks import contenders as c
from tests.benchmarks.sections import CLEAN_FILE, FILE_WITH_FINDINGS, Section

TORCHFIX_RATIO = 80.0
WARM_ALLOWANCE = 0.25
FILE_WITH_FINDINGS_SECONDS = 0.6
PEAK_MEGABYTES = 400.0
GROWTH_RATIO = 1.5


@dataclass(frozen=True, slots=True)
class Limit:
    """A promise, what was measured, and the bound in the same unit."""

    promise: str
    measured: float
    bound: float
    unit: str
    at_least: bool = False

    @property
    def met(self) -> bool:
        """Whether the measured value is on the right side of the bound."""
        return self.measured >= self.bound if self.at_least else self.measured <= self.bound


def limits_of(sections: Sequence[Section]) -> list[Limit]:
    """Every promise that these sections can judge."""
    return [limit for section in sections for limit in _limits_of(section)]


def _limits_of(section: Section) -> Iterator[Limit]:
    if section.key.startswith("growth"):
        yield _growth(section)
    elif section.key == "file":
        yield from _small_file(section)
    else:
        yield from _corpus(section)
    yield _peak(section)


def _corpus(section: Section) -> Iterator[Limit]:
    medians = {name: timing.median for name, timing in section.timings.items()}
    cold = medians[c.MEMLINT_COLD]
    if c.HOTPATH in medians:
        promise = f"{section.title}: cold not slower than {c.HOTPATH}"
        yield Limit(promise, cold, medians[c.HOTPATH], "s")
    if c.TORCHFIX in medians:
        promise = f"{section.title}: {c.TORCHFIX} over memlint, cold"
        yield Limit(promise, medians[c.TORCHFIX] / cold, TORCHFIX_RATIO, "x", at_least=True)
    allowed = medians[c.MEMLINT_VERSION] + WARM_ALLOWANCE
    promise = f"{section.title}: warm, against `memlint --version` and {WARM_ALLOWANCE} s"
    if section.key != "small":
        allowed += 2 * (medians[c.WALK] - medians[c.BARE_PYTHON])
        promise += " and two walks over the files"
    yield Limit(promise, medians[c.MEMLINT_WARM], allowed, "s")


def _small_file(section: Section) -> Iterator[Limit]:
    medians = {name: timing.median for name, timing in section.timings.items()}
    promise = f"{CLEAN_FILE}: not slower than `{c.IMPORT_LIBCST}`"
    yield Limit(promise, medians[CLEAN_FILE], medians[c.IMPORT_LIBCST], "s")
    yield Limit(FILE_WITH_FINDINGS, medians[FILE_WITH_FINDINGS], FILE_WITH_FINDINGS_SECONDS, "s")


def _growth(section: Section) -> Limit:
    """Seconds a megabyte in the upper half of the sizes, over the same in the lower half."""
    points = sorted(
        (megabytes, section.timings[name].median) for name, megabytes in section.megabytes.items()
    )
    first, middle, last = points[0], points[len(points) // 2], points[-1]
    lower = (middle[1] - first[1]) / (middle[0] - first[0])
    upper = (last[1] - middle[1]) / (last[0] - middle[0])
    promise = f"{section.title}: cost of a further megabyte, upper sizes over lower ones"
    return Limit(promise, upper / lower, GROWTH_RATIO, "x")


def _peak(section: Section) -> Limit:
    ours = [timing for name, timing in section.timings.items() if name.startswith("memlint")]
    promise = f"{section.title}: largest process of memlint"
    return Limit(promise, max(timing.peak for timing in ours) / 1e6, PEAK_MEGABYTES, "MB")
