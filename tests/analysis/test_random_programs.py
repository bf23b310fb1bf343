"""Random programs, read by the interpreter and run: what is definitely said must be true."""

from __future__ import annotations

import ast
import os
from collections import Counter
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memlint.analysis.interpreter import Interpreter
from memlint.analysis.values import Tensor, Value, alternatives
from memlint.source.model import Source
from tests.analysis.claims import Tally, contradictions

np = pytest.importorskip("numpy", reason="the random programs run numpy")
torch = pytest.importorskip("torch", reason="the random programs run torch")

HEAD = """
import numpy as np
import torch
import torch.nn.functional as F
from outside import coin
"""
# The thorough run is of 5,000.
COUNT = int(os.environ.get("MEMLINT_RANDOM_PROGRAMS", "200"))
SIZES = (1, 2, 2, 3, 4, 4, 6)
MAKERS = (
    "torch.zeros({shape})",
    "torch.rand(({shape},))",
    "torch.ones(size=({shape},), dtype=torch.float64)",
    "torch.empty({shape}).fill_(1.0)",
    "torch.from_numpy(np.zeros(({shape},), order='F'))",
)
STEPS = (
    "{x}.transpose({i}, {j})",
    "{x}.mT",
    "{x}.permute(*range({x}.dim()))",
    "{x}.permute({i}, {j}, {k})",
    "{x}.movedim({i}, {j})",
    "{x}.unsqueeze({i})",
    "{x}.squeeze()",
    "{x}.narrow({i}, 0, {n})",
    "{x}[:, ::{n}]",
    "{x}[..., :{n}]",
    "{x}[{n}:]",
    "{x}[:, 0]",
    "{x}[..., None]",
    "{x}.flatten({i}, {j})",
    "{x}.reshape({x}.shape[0], -1)",
    "{x}.reshape(-1, {n})",
    "{x}.contiguous()",
    "{x}.clone()",
    "{x}.double()",
    "{x}.to(torch.float16)",
    "{x} + 1",
    "{x} * {x}",
    "F.relu({x})",
    "torch.relu({x}).exp()",
    "torch.softmax({x}, dim={i})",
    "torch.empty_like({x})",
    "torch.zeros_like({x}, memory_format=torch.contiguous_format)",
    "torch.stack([{x}, {x}], dim={i})",
    "torch.cat(({x}, {x}), {i})",
    "{x}.sum(dim={i}, keepdim=True)",
    "{x}.mean({i})",
    "{x} @ {x}.mT",
    "{x}.expand(2, *{x}.shape)",
    "torch.as_tensor(np.asfortranarray({x}.numpy()))",
    "torch.from_numpy(np.ascontiguousarray({x}.numpy().T))",
    "torch.from_numpy({x}.numpy().swapaxes({i}, {j}))",
)
SHAPES_OF_CODE = (
    "{v} = {step}",
    "{v} = {step}",
    "if coin():\n    {v} = {step}",
    "if coin():\n    {v} = {step}\nelse:\n    {v} = {other}",
    "for _ in range({n}):\n    {v} = {step}",
    "while coin():\n    {v} = {step}",
    "def helper_{number}(a):\n    return {step_a}\n{v} = helper_{number}({x})",
    "def helper_{number}(a, turn=False):\n    if turn:\n        return {step_a}\n    return a\n"
    "{v} = helper_{number}({x}, turn=True)",
    "{v}, *rest_{number} = {x}.chunk({n}, dim={i})",
    "{v}, {w} = {step}, {other}",
    "options_{number} = dict(dim={i}, keepdim=True)\n{v} = {x}.sum(**options_{number})",
    "{v} = [{step}, {other}][{n} - 1]",
    "turn_{number} = lambda a: {step_a}\n{v} = turn_{number}({x})",
    "class Holder_{number}:\n    def __init__(self):\n        self.kept = {step}\n"
    "{v} = Holder_{number}().kept",
    "with torch.no_grad():\n    {v} = {step}",
    "try:\n    {v} = {step}\nfinally:\n    pass",
    "if ({v} := {step}) is None:\n    {v} = {other}",
)
NAMES = ("p", "q", "r")
REFUSED = (RuntimeError, IndexError, ValueError, TypeError)


def _block(rng: Random, number: int) -> str:
    axes = range(-3, 3)
    numbers = {key: rng.choice(axes) for key in "ijk"} | {"n": rng.randint(1, 3)}
    x = rng.choice(NAMES)
    steps = [rng.choice(STEPS), rng.choice(STEPS)]
    return rng.choice(SHAPES_OF_CODE).format(
        v=rng.choice(NAMES),
        w=rng.choice(NAMES),
        x=x,
        number=number,
        step=steps[0].format(x=x, **numbers),
        step_a=steps[0].format(x="a", **numbers),
        other=steps[1].format(x=x, **numbers),
        **numbers,
    )


def _program(rng: Random) -> tuple[str, dict[str, Any]]:
    """A program that runs, and its variables at the end."""
    tosses = Random(rng.randint(0, 1 << 30))
    text = HEAD
    names: dict[str, Any] = {
        "np": np,
        "torch": torch,
        "F": torch.nn.functional,
        "coin": lambda: tosses.random() < 0.5,
    }
    for name in NAMES:
        shape = ", ".join(str(rng.choice(SIZES)) for _ in range(rng.randint(2, 4)))
        line = f"{name} = {rng.choice(MAKERS).format(shape=shape)}"
        exec(line, names)
        text += line + "\n"
    for number in range(rng.randint(2, 7)):
        block = _block(rng, number)
        trial = dict(names)
        try:
            exec(block, trial)
        except REFUSED:
            continue
        if all(0 < trial[name].numel() < 100_000 for name in NAMES):
            names, text = trial, text + block + "\n"
    return text, names


def _read(text: str) -> dict[str, Value]:
    tree = ast.parse(text)
    interpreter = Interpreter(Source("random.py", text), tree, "auto")
    list(interpreter.events_of_program())
    return {name: interpreter.module_scope.vars[name] for name in NAMES}


def _wrong(claim: Value, real: Any, where: str) -> list[str]:
    """What each alternative says that is not so; empty where one of them holds.

    What is said of an array that nothing is known of rests on the assumption that parameters are
    dense and slices leave something out, which these programs do not keep to."""
    found: list[str] = []
    for one in alternatives(claim):
        if isinstance(one, Tensor) and one.assumed:
            return []
        here = contradictions(one, real, {}, Tally(), where)
        if not here:
            return []
        found += here
    return found


@pytest.mark.filterwarnings("ignore")
@settings(deadline=None, max_examples=COUNT, suppress_health_check=list(HealthCheck))
@given(st.randoms(use_true_random=False))
def test_what_is_said_of_random_programs_is_true(rng: Random) -> None:
    text, names = _program(rng)
    for name, claim in _read(text).items():
        wrong = _wrong(claim, names[name], name)
        assert not wrong, "\n".join([text, *wrong])


def test_much_is_said_of_random_programs() -> None:
    """Silence would pass the test above."""
    kinds: Counter[str] = Counter()
    for seed in range(40):
        text, _ = _program(Random(seed))
        for claim in _read(text).values():
            kinds.update(type(one).__name__ for one in alternatives(claim))
            kinds.update(
                "ranked"
                for one in alternatives(claim)
                if isinstance(one, Tensor) and one.layout.rank is not None
            )
    assert kinds["Tensor"] > 80
    assert kinds["ranked"] > 50, kinds


def test_numpy_gives_a_number_an_axis() -> None:
    text = (
        "import numpy as np\np = np.zeros(())\nq = np.asfortranarray(p)\n"
        "r = np.ascontiguousarray(p)\n"
    )
    names: dict[str, Any] = {}
    exec(text, names)
    told = _read(text)
    assert {name: names[name].shape for name in told} == {"p": (), "q": (1,), "r": (1,)}
    assert [one for name in told for one in _wrong(told[name], names[name], name)] == []


def test_what_may_be_too_many_things_is_not_taken_for_dense() -> None:
    text = HEAD + (
        "p = q = r = torch.from_numpy(np.zeros((3, 2, 2), order='F'))\n"
        "for _ in range(3):\n"
        "    if coin():\n        p = p.transpose(0, 1)\n"
        "    if coin():\n        p = p.transpose(1, 2)\n"
        "    if coin():\n        p = torch.softmax(q, dim=0)\n"
        "p = p.transpose(0, 0)\n"
    )
    claim = _read(text)["p"]
    assert isinstance(claim, Tensor)
    assert claim.layout.opaque
