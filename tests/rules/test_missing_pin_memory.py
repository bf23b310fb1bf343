from __future__ import annotations

import pytest

from memlint.findings import Applicability, Confidence, Finding, Severity
from tests.rules.linting import fixed, found, only

RULE = "missing-pin-memory"


def program(arguments: str, *, head: str = "import torch", device: str = '"cuda"') -> str:
    return f"""{head}
from torch.utils.data import DataLoader


def run(dataset, model, options, flag, workers):
    loader = DataLoader({arguments})
    for x in loader:
        model(x.to({device}))
"""


def one(arguments: str, **context: str) -> Finding:
    return only(program(arguments, **context), RULE)


def mended(arguments: str, **context: str) -> str:
    text = program(arguments, **context)
    finding = only(text, RULE)
    assert finding.fix is not None
    changed = fixed(text, finding.fix)
    assert found(changed, RULE) == []
    return changed


def test_with_workers_it_is_a_warning_that_names_the_loader_and_the_copy() -> None:
    finding = one("dataset, num_workers=4")
    assert (finding.severity, finding.confidence) == (Severity.WARNING, Confidence.HIGH)
    assert finding.message == "the batches of `loader` are copied to CUDA from pageable memory"
    (place,) = finding.related
    assert (place.message, place.location.line) == ("batches go to CUDA here", 8)


@pytest.mark.parametrize("arguments", ["dataset", "dataset, num_workers=0"])
def test_without_workers_it_is_only_info_and_speaks_of_them_first(arguments: str) -> None:
    finding = one(arguments)
    assert (finding.severity, finding.confidence) == (Severity.INFO, Confidence.MEDIUM)
    assert "give the loader workers first" in finding.message
    assert finding.fix is not None
    assert finding.fix.applicability is Applicability.UNSAFE


def test_a_number_of_workers_that_is_not_known_may_be_zero() -> None:
    finding = one("dataset, num_workers=workers")
    assert (finding.severity, finding.confidence) == (Severity.WARNING, Confidence.MEDIUM)


def test_a_literal_false_is_info_and_is_replaced() -> None:
    finding = one("dataset, num_workers=4, pin_memory=False")
    assert finding.severity is Severity.INFO
    assert finding.message.startswith("pin_memory=False although")
    changed = mended("dataset, num_workers=4, pin_memory=False")
    assert "DataLoader(dataset, num_workers=4, pin_memory=torch.cuda.is_available())" in changed


def test_the_keyword_is_added_in_the_style_of_the_call() -> None:
    changed = mended("\n        dataset,\n        num_workers=4,  # cores\n    ")
    assert (
        "        num_workers=4,  # cores\n        pin_memory=torch.cuda.is_available(),\n    )\n"
    ) in changed


def test_torch_is_called_what_the_module_calls_it() -> None:
    assert "pin_memory=th.cuda.is_available()" in mended(
        "dataset, num_workers=4", head="import torch as th"
    )


def test_no_fix_where_torch_has_no_name_in_the_module() -> None:
    assert one("dataset, num_workers=4", head="import os").fix is None


def test_no_fix_where_arguments_stand_elsewhere() -> None:
    text = program("dataset, **options").replace("(dataset, model, options,", "(dataset, model,")
    finding = only(text.replace("    loader", "    options = {'num_workers': 2}\n    loader"), RULE)
    assert finding.fix is None


def test_a_multiprocessing_context_makes_the_fix_unsafe() -> None:
    finding = one('dataset, num_workers=4, multiprocessing_context="spawn"')
    assert finding.fix is not None
    assert finding.fix.applicability is Applicability.UNSAFE


def test_a_partial_is_shown_beside_the_call() -> None:
    finding = only(
        """import torch
from functools import partial
from torch.utils.data import DataLoader

Loader = partial(DataLoader, num_workers=4, pin_memory=False)


def run(dataset, model):
    batches = Loader(dataset)
    for x in batches:
        model(x.cuda())
""",
        RULE,
    )
    assert finding.location.line == 9
    assert {place.location.line for place in finding.related} == {5, 11}
    assert finding.fix is None


@pytest.mark.parametrize(
    "arguments",
    [
        "dataset, num_workers=4, pin_memory=flag",
        "dataset, num_workers=4, pin_memory=True",
        "dataset, num_workers=4, **options",
        "range(100), num_workers=4",
    ],
)
def test_silent_where_it_may_be_pinned_or_nothing_is_to_be_won(arguments: str) -> None:
    assert found(program(arguments), RULE) == []


@pytest.mark.parametrize("device", ['"cpu"', '"mps"', "options.device", 'torch.device("xpu")'])
def test_silent_on_other_devices(device: str) -> None:
    assert found(program("dataset, num_workers=4", device=device), RULE) == []


@pytest.mark.parametrize(
    "device",
    [
        '"cuda:1"',
        "0",
        'torch.device("cuda", 0)',
        '"cuda" if torch.cuda.is_available() else "cpu"',
        'f"cuda:{flag}"',
    ],
)
def test_devices_that_are_cuda(device: str) -> None:
    assert found(program("dataset, num_workers=4", device=device), RULE)


@pytest.mark.parametrize(
    ("moved", "counts"),
    [
        ("x", True),
        ("x[0]", True),
        ("x['image']", True),
        ("x.float()", True),
        ("x.view(-1, 4)", True),
        ("x / 255", False),
        ("x.sum()", False),
        ("torch.cat([x, x])", False),
        ("model(x)", False),
    ],
)
def test_only_memory_of_the_batch_counts(moved: str, counts: bool) -> None:
    text = program("dataset, num_workers=4").replace("x.to", f"({moved}).to")
    assert bool(found(text, RULE)) is counts


def test_a_loader_wrapped_by_unseen_code_is_still_followed() -> None:
    text = program("dataset, num_workers=4").replace("in loader", "in options.log_every(loader)")
    assert found(text, RULE)


def test_the_result_of_unseen_code_is_no_batch() -> None:
    text = program("dataset, num_workers=4").replace(
        "    for x in loader:\n        model(x.to", "    if True:\n        model(flag(loader).to"
    )
    assert found(text, RULE) == []


@pytest.mark.parametrize(
    "condition",
    [
        "torch.cuda.is_available()",
        "flag and torch.cuda.is_available()",
        "not flag and torch.cuda.is_available()",
        'options.device.type == "cuda"',
        'options.device != "cpu"',
        "options.use_cuda",
    ],
)
def test_a_loader_that_is_made_only_where_there_is_no_cuda_is_silent(condition: str) -> None:
    text = f"""import torch
from torch.utils.data import DataLoader


def run(dataset, model, options, flag):
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if {condition}:
        loader = DataLoader(dataset, num_workers=4, pin_memory=True)
    else:
        loader = DataLoader(dataset, num_workers=2)
    for x in loader:
        model(x.to(device))
"""
    assert found(text, RULE) == []
    chosen = "pinned if {} else DataLoader(dataset, num_workers=2)"
    before, _, rest = text.partition(f"    if {condition}")
    rest = rest[rest.index("    for x") :]
    in_line = before + f"    loader = {chosen.format(condition)}\n" + rest
    assert found(in_line, RULE) == []
    other = text.replace(condition, "flag")
    assert [finding.location.line for finding in found(other, RULE)] == [10]
    early = text.replace("    else:\n    ", "    else:\n        pass\n    if not flag:\n    ")
    assert [finding.location.line for finding in found(early, RULE)] == [12]


def test_a_way_out_with_cuda_leaves_the_rest_without() -> None:
    text = """import torch
from torch.utils.data import DataLoader


def make(dataset):
    if torch.cuda.is_available():
        return DataLoader(dataset, num_workers=4, pin_memory=True)
    return DataLoader(dataset, num_workers=4)


def run(dataset, model):
    for x in make(dataset):
        model(x.cuda())
"""
    assert found(text, RULE) == []
    assert found(text.replace("cuda.is_available()", "rand(1) > 0.5"), RULE)
