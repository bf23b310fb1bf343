"""The same program is read the same, whatever its line ends, and in a notebook."""

from __future__ import annotations

import json

import pytest

from memlint.linter.run import check
from tests.linter.conftest import Write

MATMUL = """\
import numpy as np


def product(a, b):
    c = np.zeros((100, 100))
    for i in range(100):
        for j in range(100):
            for k in range(100):
                c[i, j] += a[i, k] * b[k, j]
    return c
"""
TRANSFER = """\
import torch


def train(model, weight):
    while True:
        loss = model(weight.to("cuda"))
        loss.backward()
"""
LOSSES = """\
import torch


def train(model, loader, opt):
    losses = []
    for x in loader:
        loss = model(x)
        loss.backward()
        opt.step()
        losses.append(loss)
    return losses
"""
PROGRAMS = {"MEM102": MATMUL, "MEM212": TRANSFER, "MEM502": LOSSES}


@pytest.mark.parametrize("code", PROGRAMS)
@pytest.mark.parametrize("kind", ["unix", "windows", "mac", "notebook"])
def test_a_program_in_each_spelling(write: Write, code: str, kind: str) -> None:
    text = PROGRAMS[code]
    if kind == "notebook":
        cell = {"cell_type": "code", "source": text.splitlines(keepends=True), "metadata": {}}
        whole = {"cells": [{**cell, "outputs": [], "execution_count": None}], "nbformat": 4}
        write("program.ipynb", json.dumps({**whole, "nbformat_minor": 5, "metadata": {}}))
    else:
        end = {"unix": "\n", "windows": "\r\n", "mac": "\r"}[kind]
        write("program.py", text.replace("\n", end))
    report = check(["."], isolated=True, overrides={"select": [code]}, use_cache=False)
    assert [finding.code for finding in report.findings] == [code]
