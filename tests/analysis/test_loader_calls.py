"""The sieve of loaders must let pass whatever may make one, and little else."""

from __future__ import annotations

import ast

import pytest

from memlint.analysis.loader_calls import may_make_loader, may_start_workers
from memlint.rule import UnitTest


def passes(test: UnitTest, body: str, source: str = "", head: str = "") -> bool:
    text = f"def f(self, data: DataLoader, n) -> DataLoader:\n    {body}\n"
    return test(ast.parse(text).body[0], head + text, f"{source}\n{text}")


@pytest.mark.parametrize(
    "body",
    [
        "return DataLoader(data, num_workers=4)",
        "return torch.utils.data.DataLoader(data, num_workers=n)",
        "return DataLoader(data, **options)",
        "return DataLoader(data, 8, True, None, None, 4)",
        "return DataLoader(*options)",
        "return partial(DataLoader, data)",
        "make = {'train': DataLoader}['train']",
        "return prepare(DataLoader(data, num_workers=2))",
        "return FastDataLoader(data, num_workers=2)",
    ],
)
def test_loaders_with_workers(body: str) -> None:
    assert passes(may_start_workers, body)
    assert passes(may_make_loader, body)


@pytest.mark.parametrize(
    "body", ["return DataLoader(data, 8)", "return DataLoader(data, num_workers=0)"]
)
def test_loaders_without_workers(body: str) -> None:
    assert passes(may_make_loader, body)
    assert not passes(may_start_workers, body)


@pytest.mark.parametrize(
    "body",
    [
        "return isinstance(data, DataLoader)",
        "loader: DataLoader = data",
        "return self.loader(data, num_workers=4)",
        "return DataLoaderConfiguration(n)",
        "return prepare_data_loader(data)",
    ],
)
def test_mentions_that_make_none(body: str) -> None:
    assert not passes(may_make_loader, body)
    assert not passes(may_start_workers, body)


@pytest.mark.parametrize(
    "source",
    [
        "from torch.utils.data import DataLoader as Feed",
        "Feed = torch.utils.data.DataLoader",
        "class Feed(DataLoader): pass",
    ],
)
def test_other_names(source: str) -> None:
    assert passes(may_start_workers, "return Feed(data, num_workers=2)", source)
    assert not passes(may_start_workers, "return Other(data, num_workers=2)", source)


def test_methods_of_a_loader() -> None:
    head = "class Feed(DataLoader):\n"
    assert passes(may_start_workers, "super().__init__(data, num_workers=4)", head=head)
    assert not passes(may_start_workers, "super().__init__(data)", head="class Feed(Dataset):\n")
    assert not passes(may_start_workers, "return len(data)", head=head)
