"""Matrix products: the loops give the library's product, and what numbers make of the claims."""

from __future__ import annotations

import numpy as np
import pytest

from memlint.bench.experiments import matrix_product
from memlint.bench.experiments.matrix_product import blas_answer, tiles_answer
from memlint.bench.results import Standing
from tests.bench.samples import noisy, row


def test_all_forms_multiply() -> None:
    pytest.importorskip("numba")
    a, b, c = matrix_product._operands(100, "float64")()
    forms = (*matrix_product._compiled(), matrix_product._tiles_of_slices, matrix_product._product)
    for form in forms:
        c[...] = np.nan
        form(a, b, c)
        np.testing.assert_allclose(c, a @ b)


def test_tiles_by_hand() -> None:
    assert tiles_answer(row(3.0), row(0.5)).standing is Standing.HOLDS
    found = tiles_answer(row(5.0), row(4.5))
    assert found.standing is Standing.PARTLY
    assert "naive loops are 5.00 times slower" in found.measured
    assert "tiles are 4.50 times slower" in found.measured
    assert tiles_answer(row(1.0), row(4.5)).standing is Standing.DOES_NOT_HOLD
    assert tiles_answer(row(5.0), noisy()).standing is Standing.UNMEASURED


def test_what_makes_a_library_fast() -> None:
    # Tiles come near the library, other orders do not.
    assert blas_answer(row(200.0), row(9.0), row(1.5)).standing is Standing.HOLDS
    # Tiles are further from it than another order.
    assert blas_answer(row(200.0), row(8.0), row(38.0)).standing is Standing.PARTLY
    assert blas_answer(row(1.5), row(1.0), row(1.0)).standing is Standing.DOES_NOT_HOLD
    assert blas_answer(row(200.0), noisy(), row(38.0)).standing is Standing.UNMEASURED
