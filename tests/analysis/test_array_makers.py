"""What is said to give an array does, and one that has an axis."""

from __future__ import annotations

import ast
from operator import attrgetter, methodcaller
from typing import Any

import pytest

from memlint.analysis.knowledge.array_makers import (
    ARRAY_FUNCTIONS,
    ARRAY_METHODS,
    ELEMENTWISE,
    FLAT,
    KEEP_RANK,
    PAIRS,
    REDUCTIONS,
    SEVERAL,
    SIZED,
    SIZED_METHODS,
    gives_several,
    is_array,
)
from memlint.analysis.values import Const, Made, Sequence, Tensor, Unknown, Value, with_made

np = pytest.importorskip("numpy")

ARGUMENTS: dict[str, tuple[Any, ...]] = {
    "array": ([1, 2],),
    "asarray": ([1, 2],),
    "ascontiguousarray": ([1, 2],),
    "asfortranarray": ([1, 2],),
    "atleast_1d": (1,),
    "atleast_2d": (1,),
    "stack": ([[1], [2]],),
    "vstack": ([[1], [2]],),
    "hstack": ([[1], [2]],),
    "concatenate": ([[1], [2]],),
    "frombuffer": (b"12345678",),
    "zeros": (3,),
    "ones": (3,),
    "empty": (3,),
    "full": (3, 1.0),
    "arange": (3,),
    "linspace": (0.0, 1.0),
    "clip": (0, 1),
    "expand_dims": (0,),
    "pad": (1,),
    "eye": (3,),
    "identity": (3,),
    "bincount": ([1, 2],),
    "convolve": ([1, 2], [1, 2]),
    "cumsum": ([1, 2],),
    "diff": ([1, 2],),
    "ediff1d": ([1, 2],),
    "flatnonzero": ([1, 0],),
    "logspace": (0.0, 1.0),
    "random.permutation": (3,),
    "repeat": (1, 3),
    "tile": (1, 3),
    "tri": (3,),
    "roll": (1,),
    "full_like": (1.0,),
}
# They read files.
OF_FILES = {"fromfile", "fromstring", "loadtxt", "genfromtxt"}


def numpy_names(names: frozenset[str]) -> list[str]:
    return sorted(name[6:] for name in names if name.startswith("numpy."))


def made_by(name: str, *inputs: Value) -> Value:
    made = Made(name, ast.parse("x[1:]", mode="eval").body, inputs)
    return with_made(Unknown("call"), made)


@pytest.mark.parametrize("name", [n for n in numpy_names(ARRAY_FUNCTIONS) if n not in OF_FILES])
def test_functions_make_arrays(name: str) -> None:
    result = attrgetter(name)(np)(*ARGUMENTS[name])
    assert isinstance(result, np.ndarray)
    assert result.ndim >= 1
    assert is_array(made_by(f"numpy.{name}"))


@pytest.mark.parametrize("name", numpy_names(KEEP_RANK))
def test_functions_keep_the_axes(name: str) -> None:
    result = attrgetter(name)(np)(np.ones((2, 3)), *ARGUMENTS.get(name, ()))
    assert isinstance(result, np.ndarray)
    assert result.ndim >= 2
    assert is_array(made_by(f"numpy.{name}", made_by("numpy.asarray")))
    assert not is_array(made_by(f"numpy.{name}", Unknown("call")))


@pytest.mark.parametrize("name", sorted(n for n in KEEP_RANK if n.startswith(".")))
def test_methods_keep_the_axes(name: str) -> None:
    given = {".astype": ("float32",), ".clip": (0, 1), ".swapaxes": (0, 1)}.get(name, ())
    x = np.ones((2, 3))
    result = x.T if name == ".T" else methodcaller(name[1:], *given)(x)
    assert isinstance(result, np.ndarray)
    assert result.ndim == 2


@pytest.mark.parametrize("name", sorted(FLAT))
def test_methods_leave_an_axis(name: str) -> None:
    given = {".reshape": (-1,), ".repeat": (2,)}.get(name, ())
    assert methodcaller(name[1:], *given)(np.ones((2, 3))).ndim >= 1
    assert is_array(made_by(name, made_by("numpy.asarray")))
    assert not is_array(made_by(name, Unknown("call")))


@pytest.mark.parametrize("name", numpy_names(ELEMENTWISE))
def test_functions_of_several_operands_give_an_array_where_one_is(name: str) -> None:
    given = (True, 1.0, np.ones(3)) if name == "where" else (1.0, np.ones(3))
    assert getattr(np, name)(*given).shape == (3,)
    values = [Const(1.0) for _ in given[1:]]
    assert is_array(made_by(f"numpy.{name}", *values, made_by("numpy.asarray")))
    assert not is_array(made_by(f"numpy.{name}", *values, Const(2.0)))


@pytest.mark.parametrize("name", sorted(REDUCTIONS))
def test_reductions_over_the_second_axis_leave_the_first(name: str) -> None:
    x = np.ones((2, 3, 4))
    function = methodcaller(name[1:], axis=1) if name[0] == "." else attrgetter(name[6:])(np)
    given = {} if name[0] == "." else {"axis": 1}
    assert function(x, **given).shape == (2, 4)
    assert np.ndim(function(x[0], **given)) == 1
    for axis, leaves in (
        (Const(1), True),
        (Sequence("tuple", (Const(1), Const(2))), True),
        (Const(0), False),
        (Const(-1), False),
        (Sequence("tuple", (Const(0), Const(1))), False),
    ):
        made = Made(name, ast.Pass(), (made_by("numpy.asarray"),), (("axis", axis),))
        assert is_array(with_made(Unknown("call"), made)) is leaves


@pytest.mark.parametrize("name", numpy_names(SEVERAL))
def test_functions_give_several_arrays(name: str) -> None:
    given: dict[str, tuple[Any, ...]] = {
        "meshgrid": (np.arange(2), np.arange(3)),
        "ix_": ([0, 1], [0]),
        "indices": ((2, 2),),
        "unravel_index": ([1, 2], (2, 2)),
        "array_split": (np.ones(4), 2),
        "split": (np.ones(4), 2),
        "tril_indices": (3,),
        "triu_indices": (3,),
        "diag_indices": (3,),
    }
    found = getattr(np, name)(*given.get(name, (np.ones((2, 2)),)))
    assert all(isinstance(one, np.ndarray) and one.ndim >= 1 for one in found)
    assert gives_several(Made(f"numpy.{name}", ast.Pass(), (Unknown(),)))


@pytest.mark.parametrize("name", numpy_names(PAIRS))
def test_functions_give_a_pair_of_arrays(name: str) -> None:
    first, second = attrgetter(name)(np)(np.eye(3))
    assert first.ndim >= 1
    assert second.ndim >= 1
    whole = made_by(f"numpy.{name}", Unknown())
    entry = Made("operator.getitem", ast.parse("x[0]", mode="eval").body, (whole, Const(0)))
    assert is_array(with_made(Unknown("call"), entry))


def test_what_counts_unique_entries_gives_several() -> None:
    assert np.unique([1, 1]).shape == (1,)
    assert is_array(made_by("numpy.unique"))
    counts = Made("numpy.unique", ast.Pass(), (), (("return_counts", Const(True)),))
    assert not is_array(with_made(Unknown("call"), counts))


def test_one_of_two_axes_is_left_by_one_number() -> None:
    from memlint.analysis.axes import dense

    node = ast.parse("table[k]", mode="eval").body
    table = Tensor("numpy", dense((None, None)))
    assert np.eye(3)[1].ndim == 1
    row = Made("operator.getitem", node, (table, Unknown()))
    assert is_array(with_made(Unknown("call"), row))
    cell = Made("operator.getitem", node, (table, Unknown(), Unknown()))
    assert not is_array(with_made(Unknown("call"), cell))


@pytest.mark.parametrize("name", sorted(SIZED))
def test_random_numbers_are_arrays_where_a_size_is_given(name: str) -> None:
    function = attrgetter(name[6:])(np)
    before = {"choice": (5,), "randint": (1, 5), "normal": (0.0, 1.0), "uniform": (0.0, 1.0)}
    given = before.get(name.rpartition(".")[2], ())
    assert len(given) == SIZED[name]
    assert function(*given, 3).shape == (3,)
    assert np.ndim(function(*given[:1])) == 0
    assert is_array(made_by(name, *(Const(0) for _ in given), Const(3)))
    assert not is_array(made_by(name, *(Const(0) for _ in given[:1])))


@pytest.mark.parametrize("name", sorted(SIZED_METHODS))
def test_methods_of_generators_take_a_size_by_name(name: str) -> None:
    given = (5,) if name in (".integers", ".choice") else ()
    assert methodcaller(name[1:], *given, size=3)(np.random.default_rng(0)).shape == (3,)


def test_tensors_give_arrays() -> None:
    torch = pytest.importorskip("torch")
    assert isinstance(torch.ones(3).numpy(), np.ndarray)
    assert ".numpy" in ARRAY_METHODS


def test_no_tensor_is_made_of_a_list_of_arrays_without_an_axis() -> None:
    torch = pytest.importorskip("torch")
    for function in (torch.tensor, torch.as_tensor, torch.FloatTensor):
        with pytest.raises(TypeError, match="unsized"):
            function([np.asarray(1.0)])


def test_an_entry_of_an_array_may_be_a_number() -> None:
    assert not is_array(with_made(Unknown(""), Made("numpy.asarray", ast.Pass(), ())))


def test_arrays_of_objects_are_none_that_a_tensor_holds() -> None:
    made = Made("numpy.array", ast.Pass(), (Unknown(),), (("dtype", Const("O")),))
    assert not is_array(with_made(Unknown("call"), made))


def test_tensors_of_other_libraries_are_no_arrays() -> None:
    from memlint.analysis.axes import OPAQUE

    assert not is_array(Tensor("torch", OPAQUE))
