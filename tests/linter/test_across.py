"""Facts that lie in several files of a project: where they are found, and what they depend on."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from memlint.findings import Finding, Report
from memlint.linter.run import check
from tests.linter.conftest import Write

FACTORY = """\
from torch.utils.data import DataLoader


def make_loader(dataset, size):
    return DataLoader(dataset, batch_size=size, num_workers=4)
"""
TRAINING = """\
import torch
{imports}


def train(model, dataset):
    for images, labels in {call}(dataset, 64):
        model(images.to("cuda"))
"""
MODEL = """\
from torch import nn


class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.first = nn.Conv2d(width, 2 * width, 3)
        self.second = nn.Conv2d(2 * width, 4 * width, 3)

    def forward(self, images):
        return self.second(self.first(images))
"""
MODEL_USE = """\
import torch
from nets import Net


def run(loader):
    model = Net(64).cuda()
    for images in loader:
        with torch.autocast("cuda", dtype=torch.float16):
            model(images.cuda(non_blocking=True))
"""
KERNEL = """\
import torch
import triton
import triton.language as tl


@triton.jit
def _double(source, target, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(target + at, tl.load(source + at, mask=at < count) * 2, mask=at < count)


def double(x):
    out = torch.empty(x.shape, device=x.device)
    _double[(triton.cdiv(x.numel(), 256),)](x, out, x.numel(), BLOCK=256)
    return out
"""
KERNEL_USE = """\
from kernels import double


def run(x):
    return double(x.transpose(0, 1))
"""


def lint(*paths: str, use_cache: bool = False) -> Report:
    return check(list(paths) or ["."], isolated=True, use_cache=use_cache)


def of_rule(name: str, *paths: str) -> list[Finding]:
    return [finding for finding in lint(*paths).findings if finding.name == name]


METER = """\
class Average:
    def __init__(self):
        self.total, self.count = 0.0, 0

    def update(self, value, n=1):
        self.total += value * n
        self.count += n


class Collector:
    def __init__(self):
        self.values = []

    def add(self, value):
        self.values.append(value)
"""
METER_USE = """\
import torch
from meters import Average, Collector


class Trainer:
    def __init__(self, model):
        self.model, self.history = model, Collector()

    def fit(self, loader, opt, criterion):
        meter = Average()
        for x, y in loader:
            loss = criterion(self.model(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            {keep}
        return meter.total
"""


@pytest.mark.parametrize(
    ("factory", "training", "imports", "call"),
    [
        ("data.py", "train.py", "from data import make_loader", "make_loader"),
        ("data.py", "train.py", "from data import make_loader as loader_of", "loader_of"),
        ("data.py", "train.py", "import data", "data.make_loader"),
        ("data.py", "train.py", "import data as d", "d.make_loader"),
        ("data.py", "train.py", "from data import *", "make_loader"),
        ("pkg/data.py", "pkg/train.py", "from .data import make_loader", "make_loader"),
        ("pkg/data.py", "pkg/train.py", "from . import data", "data.make_loader"),
        ("pkg/data.py", "pkg/runs/train.py", "from ..data import make_loader", "make_loader"),
        ("pkg/data.py", "pkg/runs/train.py", "from pkg.data import make_loader", "make_loader"),
        ("pkg/data.py", "train.py", "import pkg.data", "pkg.data.make_loader"),
        ("pkg/data.py", "scripts/train.py", "from pkg.data import make_loader", "make_loader"),
        ("src/pkg/data.py", "train.py", "from pkg.data import make_loader", "make_loader"),
        (
            "pkg/data.py",
            "pkg/train.py",
            "from .data import (  # the loaders\n    make_loader,\n)",
            "make_loader",
        ),
    ],
)
def test_a_loader_of_another_module(
    write: Write, factory: str, training: str, imports: str, call: str
) -> None:
    for name in (factory, training):
        for folder in Path(name).parents:
            if folder.name not in ("", "src", "scripts"):
                write(f"{folder}/__init__.py", "")
    write(factory, FACTORY)
    write(training, TRAINING.format(imports=imports, call=call))
    (finding,) = of_rule("missing-pin-memory")
    assert finding.path == training
    assert "images.to" in Path(training).read_text().splitlines()[finding.location.line - 1]
    assert (finding.related[0].path, finding.related[0].location.line) == (factory, 5)
    assert finding.fix is None


@pytest.mark.parametrize("spelling", ["from .data import make_loader", "from .data import *"])
def test_through_a_package_that_hands_on(write: Write, spelling: str) -> None:
    write("pkg/__init__.py", spelling)
    write("pkg/data.py", FACTORY)
    write("train.py", TRAINING.format(imports="from pkg import make_loader", call="make_loader"))
    (finding,) = of_rule("missing-pin-memory")
    assert finding.path == "train.py"
    assert finding.related[0].path == "pkg/data.py"


def test_through_a_class_of_another_module(write: Write) -> None:
    write(
        "base.py",
        "from torch.utils.data import DataLoader\n\n\n"
        "class Base:\n"
        "    def __init__(self, dataset):\n"
        "        self.loader = DataLoader(dataset, num_workers=2)\n",
    )
    write(
        "train.py",
        "import torch\nfrom base import Base\n\n\n"
        "class Trainer(Base):\n"
        "    def fit(self, model):\n"
        "        for images in self.loader:\n"
        "            model(images.cuda())\n",
    )
    (finding,) = of_rule("missing-pin-memory")
    assert (finding.path, finding.location.line) == ("train.py", 8)


def test_a_model_of_another_module(write: Write) -> None:
    write("nets.py", MODEL)
    write("run.py", MODEL_USE)
    (finding,) = of_rule("nchw-conv")
    assert (finding.path, finding.location.line) == ("run.py", 6)


def test_a_format_that_the_other_module_sets(write: Write) -> None:
    converted = MODEL.replace(
        "return self.second(",
        "images = images.to(memory_format=torch.channels_last)\n        return self.second(",
    )
    write("nets.py", converted.replace("from torch", "import torch\nfrom torch", 1))
    write("run.py", MODEL_USE)
    assert of_rule("nchw-conv") == []


def test_a_kernel_of_another_module(write: Write) -> None:
    write("kernels.py", KERNEL)
    write("run.py", KERNEL_USE)
    (finding,) = of_rule("noncontiguous-into-kernel")
    assert (finding.path, finding.location.line) == ("run.py", 5)
    assert "kernels.py" in {place.path for place in finding.related}


LOADING = (
    "import torch\n\n\ndef resume(model, path):\n    model.load_state_dict(torch.load(path))\n"
)


@pytest.mark.parametrize(
    ("keep", "line"),
    [
        ("meter.update(loss, x.size(0))", 6),
        ("self.history.add(loss)", 15),
        ("meter.update(loss.item(), x.size(0))", None),
        ("self.history.add(loss.detach())", None),
        ("meter.update(1.0)", None),
    ],
)
def test_a_meter_of_another_module(write: Write, keep: str, line: int | None) -> None:
    write("meters.py", METER)
    write("train.py", METER_USE.format(keep=keep))
    findings = of_rule("graph-retention")
    if line is None:
        assert findings == []
        return
    (finding,) = findings
    assert [(place.path, place.location.line) for place in finding.related] == [("meters.py", line)]
    assert finding.location.line == METER_USE.splitlines().index("            {keep}") + 1
    assert finding.fix is not None
    assert [edit.content for edit in finding.fix.edits] == ["loss.detach()"]


@pytest.mark.parametrize(
    "meter",
    [
        "class Base:\n    def update(self, val, n=1):  # told\n        self.total += val * n\n\n\n"
        "class Average(Base):\n    total = 0\n",
        "class Average:\n    total = None\n\n    def update(self, val, n=(1,), fill=float('1')):\n"
        "        self.total = val if self.total is None else 0.9 * self.total + val\n",
        "class Average:\n    def __init__(self):\n        self.kept = {'loss': []}\n\n"
        "    def update(self, val, n=1):\n        for k, v in {'loss': val}.items():\n"
        "            self.kept[k].append(v)\n",
    ],
)
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_meters_of_several_shapes(write: Write, meter: str, end: str) -> None:
    write("meters.py", (meter + "\n\nclass Collector: ...\n").replace("\n", end))
    write("train.py", METER_USE.format(keep="meter.update(loss, 2)").replace("\n", end))
    assert len(of_rule("graph-retention")) == 1


@pytest.mark.parametrize(
    ("requirement", "said"), [("", "(torch >= 2.1)"), ("torch>=2.4", ""), ("torch>=1.13", None)]
)
def test_advice_that_needs_a_version(write: Write, requirement: str, said: str | None) -> None:
    write("requirements.txt", requirement)
    write("resume.py", LOADING)
    found = of_rule("load-without-mmap")
    assert len(found) == (said is not None)
    for finding in found:
        assert ("(torch >= 2.1)" in finding.help) == bool(said)


def test_modules_that_import_each_other(write: Write) -> None:
    write("data.py", "from train import SIZE\n" + FACTORY)
    write("train.py", TRAINING.format(imports="from data import make_loader", call="make_loader"))
    (finding,) = of_rule("missing-pin-memory")
    assert finding.path == "train.py"


def test_a_name_that_goes_in_a_circle(write: Write) -> None:
    write("a.py", "from b import make_loader  # DataLoader(\n")
    write("b.py", "from a import make_loader  # DataLoader(\n")
    write("train.py", TRAINING.format(imports="from a import make_loader", call="make_loader"))
    report = lint()
    assert report.findings == ()
    assert report.errors == ()


@pytest.mark.parametrize(
    "content", ["def make_loader(:\n  DataLoader(", b"\xff\xfe\x00DataLoader("]
)
def test_a_module_that_cannot_be_read_is_its_own_trouble(
    write: Write, content: str | bytes
) -> None:
    write("data.py", content)
    write("train.py", TRAINING.format(imports="from data import make_loader", call="make_loader"))
    report = lint()
    assert report.findings == ()
    assert [error.path for error in report.errors] == ["data.py"]


def test_a_module_elsewhere_of_the_same_name_is_not_followed(write: Write) -> None:
    write("other/data.py", FACTORY)
    write("train.py", TRAINING.format(imports="from data import make_loader", call="make_loader"))
    assert lint().findings == ()


def test_pinned_in_the_other_module(write: Write) -> None:
    write("data.py", FACTORY.replace("num_workers=4", "num_workers=4, pin_memory=True"))
    write("train.py", TRAINING.format(imports="from data import make_loader", call="make_loader"))
    assert of_rule("missing-pin-memory") == []


def test_what_is_kept_depends_on_what_was_followed(write: Write) -> None:
    write("data.py", FACTORY)
    write("train.py", TRAINING.format(imports="from data import make_loader", call="make_loader"))
    old = time.time() - 1000
    for name in ("data.py", "train.py"):
        os.utime(name, (old, old))
    first = lint("train.py", use_cache=True)
    again = lint("train.py", use_cache=True)
    assert first.findings == again.findings != ()
    assert (first.cached, again.cached) == (0, 1)

    write("data.py", FACTORY.replace("num_workers=4", "num_workers=4, pin_memory=True"))
    os.utime("data.py", (old + 10, old + 10))
    changed = lint("train.py", use_cache=True)
    assert changed.cached == 0
    assert "missing-pin-memory" not in {finding.name for finding in changed.findings}
    assert lint("train.py", use_cache=True).cached == 1

    os.unlink("data.py")
    assert lint("train.py", use_cache=True).cached == 0


def test_a_kept_result_keeps_the_other_path(write: Write) -> None:
    write("data.py", FACTORY)
    write("train.py", TRAINING.format(imports="from data import make_loader", call="make_loader"))
    old = time.time() - 1000
    for name in ("data.py", "train.py"):
        os.utime(name, (old, old))
    lint(use_cache=True)
    kept = lint(use_cache=True)
    assert kept.cached == 2
    places = {place.path for finding in kept.findings for place in finding.related}
    assert "data.py" in places
