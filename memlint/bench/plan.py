"""What a run of benches is asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from memlint.bench.declare import Declared
from memlint.bench.pair import Size

QUICK_SECONDS = 0.6
FULL_SECONDS = 2.0
"""Of measuring one comparison, where there is time for it."""

_CPU = "cpu"

SITTINGS = 3
"""How often a comparison is begun anew, with operands made anew: where these happen to lie in
memory matters, and stays the same within a sitting."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How benches are run; ``None`` leaves the choice to each bench.

    ``threads`` are for what the libraries do, ``parallel`` for what is parallel by itself.
    ``budget`` is for the whole run, in seconds.  ``control`` puts each alternative in the place
    of its bad form as well: there is then nothing to be found.
    """

    full: bool = False
    size: int | None = None
    dtype: str | None = None
    device: str = "cpu"
    threads: int = 1
    parallel: int = 1
    budget: float | None = None
    control: bool = False

    @property
    def seconds(self) -> float:
        """Of measuring one comparison."""
        return FULL_SECONDS if self.full else QUICK_SECONDS

    def sizes(self, declared: Declared) -> tuple[Size, ...]:
        """The sizes that a bench of a rule is to be run at."""
        if self.size is not None:
            numbers: tuple[int, ...] = (self.size,)
        else:
            numbers = declared.sizes.full if self.full else (declared.sizes.quick,)
        dtype, device = self.dtype_of(declared), self.device_of(declared.needs)
        threads = self.threads_of(declared.needs)
        return tuple(Size(number, dtype, device, threads) for number in numbers)

    def dtype_of(self, declared: Declared) -> str:
        """The number type that a bench is run with; empty where there is no choice."""
        if self.dtype is not None and declared.dtypes:
            return self.dtype
        return declared.dtypes[0] if declared.dtypes else ""

    def device_of(self, needs: Sequence[str]) -> str:
        """The device that what has these needs runs on: without torch it knows the CPU alone."""
        if "cuda" in needs and self.device == _CPU:
            return "cuda"
        return self.device if "torch" in needs or "cuda" in needs else _CPU

    def threads_of(self, needs: Sequence[str]) -> int:
        """The threads of what has these needs: more than one CPU is needed by what is parallel."""
        return self.parallel if "cpus" in needs else self.threads

    def unfit(self, needs: Sequence[str]) -> str:
        """Why what has these needs cannot be run on the device; empty: it can be."""
        if self.device == _CPU or self.device_of(needs) != _CPU:
            return ""
        return f"about the CPU, not about {self.device}"

    def without_dtype(self, declared: Declared) -> str:
        """Why a bench cannot be run with the number type; empty: it can be."""
        if self.dtype is None or self.dtype in declared.dtypes:
            return ""
        if not declared.dtypes:
            return f"no form for {self.dtype}: its number types cannot be chosen"
        return f"no form for {self.dtype}, but for {', '.join(declared.dtypes)}"
