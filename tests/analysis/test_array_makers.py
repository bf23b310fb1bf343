"""What is said to give an array does, and one that has an axis."""

from __future__ import annotations

import ast
from operator import attrgetter, methodcaller
from typing import Any

import pytest

from memlint.analysis.knowledge.array_makers import (
    ARRAY_FUNCTIONS,
    ARRAY_METHODS,
    KEEP_RANK,
    SIZED,
    SIZED_METHODS,
    is_array,
)
from memlint.analysis.values import Const, Made, Tensor, Unknown, Value, with_made

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
    given = {".astype": ("float32",), ".clip": (0, 1)}.get(name, ())
    x = np.ones((2, 3))
    result = x.T if name == ".T" else methodcaller(name[1:], *given)(x)
    assert isinstance(result, np.ndarray)
    assert result.ndim == 2


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
