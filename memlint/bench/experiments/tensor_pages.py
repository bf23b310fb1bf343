"""What pages large tensors and arrays are made of."""

from __future__ import annotations

import os
from collections.abc import Mapping

from memlint.bench.child import in_child
from memlint.bench.experiment import Experiment, Found
from memlint.bench.lab import Lab
from memlint.bench.pages import bytes_in_huge_pages, is_hugetlb
from memlint.bench.quantities import amount
from memlint.bench.results import Answer, Standing, Unit

_NBYTES = 64 << 20
_DEFAULT, _ARRAY = "a tensor", "a NumPy array"
_ADVISED = "a tensor with THP_MEM_ALLOC_ENABLE=1"


class TensorPages(Experiment):
    """Whether large tensors and arrays lie in huge pages.

    A tensor of torch and an array of NumPy are made and written to, and the system is asked of
    what pages their memory is: /proc/self/smaps. In a full run also a tensor of a process that is
    told to ask for huge pages."""

    name = "tensor-pages"
    needs = ("torch", "numpy", "linux")

    def run(self, lab: Lab) -> Found:
        """Look at each."""
        import numpy as np
        import torch

        nbytes = lab.plan.size or _NBYTES
        tensor, array = torch.ones(nbytes, dtype=torch.uint8), np.ones(nbytes, np.uint8)
        huge = {
            _DEFAULT: float(bytes_in_huge_pages(tensor.data_ptr(), nbytes)),
            _ARRAY: float(bytes_in_huge_pages(array.ctypes.data, nbytes)),
        }
        if lab.plan.full:
            lab.require_time()
            huge[_ADVISED] = in_child(advised, nbytes)
        return Found(answers=(huge_answer(huge, is_hugetlb(tensor.data_ptr(), nbytes), nbytes),))


def advised(nbytes: int) -> float:
    """Bytes in huge pages of a tensor that asks for them; the process must be a new one."""
    os.environ["THP_MEM_ALLOC_ENABLE"] = "1"
    import torch

    tensor = torch.ones(nbytes, dtype=torch.uint8)
    return float(bytes_in_huge_pages(tensor.data_ptr(), nbytes))


def huge_answer(huge: Mapping[str, float], hugetlb: bool, nbytes: int) -> Answer:
    """Bytes in huge pages of what was made; ``hugetlb``: a tensor was mapped with MAP_HUGETLB."""
    told = ", ".join(f"{amount(found, Unit.BYTES)} of {what}" for what, found in huge.items())
    text = f"in huge pages lie, of {amount(nbytes, Unit.BYTES)} each: {told}"
    if hugetlb:
        return Answer("torch-hugetlb", Standing.HOLDS, f"{text}; mapped with MAP_HUGETLB")
    if not any(huge.values()):
        return Answer("torch-hugetlb", Standing.UNMEASURED, f"{text}: there are none to be had")
    return Answer("torch-hugetlb", Standing.DOES_NOT_HOLD, f"{text}; none with MAP_HUGETLB")
