"""What the tracer remembers of a run: plain data, without torch objects.

Operations are not kept one by one: equal ones at one place, on operands of equal layout, are
one :class:`Operation` with a count.  Rules receive these records in their ``observe`` methods.
"""

from __future__ import annotations

from dataclasses import field
from typing import TypeAlias

from memlint.late_dataclass import dataclass
from memlint.layout import Strided, is_contiguous

FORWARD, BACKWARD, OPTIMIZER, LOADING = "forward", "backward", "optimizer", "loading"


@dataclass(frozen=True, slots=True, order=True)
class Site:
    """A place of the traced program: the expression that a call stands in.

    Columns count from 1 and the end is exclusive, as in findings; they are 0 where the
    interpreter does not tell them (Python 3.10)."""

    path: str
    function: str
    line: int
    column: int = 0
    end_line: int = 0
    end_column: int = 0


@dataclass(frozen=True, slots=True)
class Operand:
    """A tensor as an operation took or gave it; strides are in elements."""

    array: Strided
    dtype: str
    device: str
    pinned: bool = False

    @property
    def is_contiguous(self) -> bool:
        """Whether its elements lie row-major without gaps."""
        return is_contiguous(self.array)

    @property
    def kind(self) -> str:
        """The device without its number: "cpu", "cuda"."""
        return self.device.partition(":")[0]


@dataclass(frozen=True, slots=True)
class Hole:
    """Stands in the arguments of an operation for operand ``index``."""

    index: int


@dataclass(frozen=True, slots=True)
class Opaque:
    """An argument that plain data cannot stand for: of a dtype, a device, a layout or a memory
    format its text, of others the name of their type alone."""

    kind: str
    text: str


Argument: TypeAlias = (
    "Hole | Opaque | bool | int | float | complex | str | tuple[Argument, ...] | None"
)


@dataclass(frozen=True, slots=True)
class Maker:
    """What made an array: the name of the operation, where it stands, the phase that it ran in
    and the dtype of its first operand (empty if it has none)."""

    name: str
    site: Site
    phase: str = FORWARD
    took: str = ""


@dataclass(slots=True)
class Operation:
    """An operation at one place, on operands of one layout, as often as it ran.

    ``name`` is as the dispatcher spells it ("aten.add.Tensor"); ``arguments`` and ``keywords``
    are those of its first run, with a :class:`Hole` for each operand.  ``steps`` counts the
    steps in which it ran, ``fresh`` how often its results had memory of their own, ``hidden``
    how often it was a copy that ``reshape`` or a product made because no view would do,
    ``grown`` how often its first operand was what it had made the time before, ``versions`` how
    many different arrays came as its first operand that is not row-major.  ``births`` are
    the places where the layouts of operands that are not row-major came up, by operand;
    ``makers`` tell, of operands of double precision and of those that go to another device,
    what made them.  Of copies, ``again`` counts those of an array that had been copied before
    and not changed since, ``copied_at`` is where that was; ``written`` is how often something
    was written into the result of a ``repeat``.  Of copies between devices that nobody waits
    for, ``conflicts`` counts those whose source was written into, or whose result was read,
    before anything had waited; ``conflict_at`` is where.
    """

    site: Site
    name: str
    phase: str
    operands: tuple[Operand, ...]
    results: tuple[Operand, ...]
    arguments: tuple[Argument, ...] = ()
    keywords: tuple[tuple[str, Argument], ...] = ()
    count: int = 0
    steps: int = 0
    fresh: int = 0
    hidden: int = 0
    grown: int = 0
    versions: int = 0
    replayable: bool = False
    births: dict[int, Site] = field(default_factory=dict)
    makers: dict[int, Maker] = field(default_factory=dict)
    again: int = 0
    copied_at: Site | None = None
    written: int = 0
    conflicts: int = 0
    conflict_at: Site | None = None

    @property
    def uses(self) -> float:
        """How often one and the same array came in an odd layout."""
        return self.count / self.versions if self.versions else 1.0

    @property
    def per_step(self) -> float:
        """How often it ran in a step in which it ran at all."""
        return self.count / self.steps if self.steps else float(self.count)

    @property
    def short(self) -> str:
        """The name without namespace and overload: "add"."""
        return self.name.split(".")[1] if "." in self.name else self.name


@dataclass(slots=True)
class Asked:
    """A method of a tensor that need not do anything, as often as it was called: ``idle`` is
    how often it gave back the tensor that it was called on, ``always`` tells that it did so with
    any tensor that it was called on at this place.  ``exchanged`` is how often the axes of that
    tensor had been exchanged just before: it is dense only by the way its numbers came."""

    site: Site
    name: str
    operand: Operand
    count: int = 0
    idle: int = 0
    steps: int = 0
    always: bool = False
    exchanged: int = 0


@dataclass(frozen=True, slots=True)
class Growth:
    """A concatenation that takes up what it has made the time before.

    ``nbytes`` is what it copied in all when it did, ``largest`` the largest result, ``first`` the
    one that it began with when it grew to that; ``rounds`` is how often it began anew."""

    site: Site
    name: str
    largest: Operand
    count: int
    steps: int
    nbytes: int
    first: Operand | None = None
    rounds: int = 1


@dataclass(frozen=True, slots=True)
class Retained:
    """Results of an operation that are alive, with the graph that they belong to, after the
    step that made them: ``count`` of them, from ``steps`` steps, in ``nbytes`` bytes.  ``sums``
    are the places where numbers are summed up over steps whose graph they belong to."""

    site: Site
    name: str
    result: Operand
    count: int
    steps: int
    nbytes: int
    sums: tuple[Site, ...] = ()


@dataclass(frozen=True, slots=True)
class Waiting:
    """Time spent in asking a loader for its next ``count`` batches, out of the time that passed
    from asking for the first until the last had come; in seconds.

    ``workers`` and ``pins`` are the loader's settings; ``operations`` is the number of operations
    that were traced meanwhile, which takes time as well."""

    site: Site
    count: int
    waited: float
    elapsed: float
    workers: int
    pins: bool
    operations: int = 0


@dataclass(frozen=True, slots=True)
class WorkerMemory:
    """The bytes that the ``workers`` of a loader share with no other process: all of them together,
    ``first`` once each had sent a batch and ``last`` so many ``batches`` later."""

    site: Site
    workers: int
    batches: int
    first: int
    last: int


@dataclass(slots=True)
class Stream:
    """A layout that is not row-major and is handed on from operation to operation.

    ``born`` is where it came up, ``births`` how often; ``takers`` are the operations that took it
    and are not views, ``largest`` is the largest tensor that had it."""

    born: Site
    largest: Operand
    births: int = 1
    takers: list[Operation] = field(default_factory=list)

    @property
    def uses(self) -> int:
        """How often it was taken."""
        return sum(taker.count for taker in self.takers)


@dataclass(frozen=True, slots=True)
class StoredScores:
    """A softmax of scores between two products; ``inputs`` are the operations that scale queries
    and keys, where torch's own attention has fallen back to this.

    ``before`` and ``after`` are the products and ``scale`` is what the scores are multiplied by,
    where that is all there is to it; where something else is done to the scores, a mask or a
    dropout, or the products are not known for sure, they are ``None``.  ``drops`` tells that some
    of the weights are dropped at random."""

    softmax: Operation
    inputs: tuple[Operation, ...] = ()
    before: Operation | None = None
    after: Operation | None = None
    scale: float = 1.0
    drops: bool = False

    @property
    def is_fallback(self) -> bool:
        """Whether it is torch's ``scaled_dot_product_attention`` that computes so."""
        return self.softmax.short == "_safe_softmax"


@dataclass(frozen=True, slots=True)
class Repeated:
    """A ``repeat``, and the first elementwise operation behind it in its function that takes an
    array like its result, as operand ``index``, just as often; ``None`` if there is no such one."""

    repeat: Operation
    taker: Operation | None = None
    index: int = 0


@dataclass(frozen=True, slots=True)
class MixedFormats:
    """A convolution whose image and weight are of different formats, so that one of them is
    converted in every call; ``other`` is the operand that is not channels_last."""

    convolution: Operation
    other: int


@dataclass(frozen=True, slots=True)
class LostFormat:
    """An operation whose operand is channels_last and whose result is not, and those that
    convert arrays of that batch and that many channels back."""

    operation: Operation
    paid: tuple[Operation, ...]


@dataclass(slots=True)
class InnerCopy:
    """A copy that the kernel of an operation made in the profiled step, ``count`` times there and
    in ``seconds`` in all, out of ``whole`` seconds that the operation took.

    ``operand`` is what was copied, as it came, ``copied`` as the kernel wanted it, ``index`` its
    number among the operands of the operation.  Of kernels on a GPU that convert formats only
    their name is known."""

    operation: Operation
    index: int | None
    operand: Operand | None
    copied: Operand | None
    kernel: str
    count: int
    seconds: float
    whole: float

    @property
    def ratio(self) -> float:
        """The operation as it was over the operation without the copy."""
        return self.whole / max(self.whole - self.seconds, 1e-12)


@dataclass(frozen=True, slots=True)
class DeviceCopy:
    """Copies between host and device at one place, as the device itself timed them.

    ``operator`` is what asked for them, empty where that is not known; ``pinned`` tells of the
    host's side, ``None`` where it is not told.  They happened in ``steps`` of the ``every`` steps
    that are marked, and ``seconds`` is what all of them took."""

    site: Site
    operator: str
    device: str
    to_device: bool
    pinned: bool | None
    count: int
    steps: int
    every: int
    nbytes: int
    seconds: float


@dataclass(frozen=True, slots=True)
class LayoutConversion:
    """Kernels that only converted the format of arrays, as ``formats`` says, for ``operator``;
    ``kernel`` is the name of one of them, ``seconds`` what all of them took."""

    site: Site
    operator: str
    kernel: str
    formats: str
    count: int
    steps: int
    seconds: float


Record: TypeAlias = (
    "Operation | Asked | Growth | Retained | Waiting | WorkerMemory | Stream | StoredScores"
    " | LostFormat | InnerCopy | DeviceCopy | LayoutConversion | Repeated | MixedFormats"
)
