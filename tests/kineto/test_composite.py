"""The table of operators that do nothing themselves is that of the dispatcher."""

from __future__ import annotations

from collections import defaultdict

import pytest

from memlint.kineto.composite import COMPOSITE

torch = pytest.importorskip("torch")


def test_the_dispatcher_takes_them_apart() -> None:
    overloads: defaultdict[str, set[bool]] = defaultdict(set)
    for schema in torch._C._jit_get_all_schemas():
        library, _, name = schema.name.partition("::")
        if library != "aten" or schema.overload_name.endswith("out"):
            continue
        full = f"{schema.name}.{schema.overload_name}".rstrip(".")
        try:
            composite = torch._C._dispatch_has_kernel_for_dispatch_key(
                full, "CompositeImplicitAutograd"
            )
        except RuntimeError:  # of TorchScript alone
            continue
        overloads[name].add(composite)
    known = COMPOSITE & overloads.keys()
    assert len(known) > 0.9 * len(COMPOSITE)
    assert {name for name in known if False in overloads[name]} == set()
    # What programs call most is there.
    everyday = {"linear", "matmul", "conv2d", "reshape", "contiguous", "to", "layer_norm", "item"}
    assert everyday <= known
