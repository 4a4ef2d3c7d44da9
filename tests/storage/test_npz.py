"""Archives of arrays: what NumPy wrote is read back, bit for bit and in its layout."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from ccmac.storage.npz import read_npz

kinds = st.sampled_from([np.float64, np.float32, np.int64, np.uint8, np.bool_, "<U3"])
arrays = kinds.flatmap(lambda kind: hnp.arrays(kind, hnp.array_shapes(min_dims=0, min_side=0)))


@given(arrays, st.booleans())
def test_what_numpy_writes_is_read_back(array: Any, fortran: bool) -> None:
    given_array = np.asfortranarray(array) if fortran else array
    stream = io.BytesIO()
    np.savez(stream, a=given_array, b=np.arange(3))
    found = read_npz(stream)
    assert set(found) == {"a", "b"}
    assert found["a"].dtype == array.dtype
    assert found["a"].shape == given_array.shape
    assert found["a"].tobytes() == given_array.tobytes()
    assert found["a"].flags.writeable


@given(st.binary(max_size=300))
def test_other_bytes_are_a_value_error(content: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011
        read_npz(io.BytesIO(content))


@given(st.integers(0, 10**6), st.binary(min_size=1, max_size=4))
def test_changed_bytes_are_read_or_refused(at: int, junk: bytes) -> None:
    stream = io.BytesIO()
    np.savez(stream, a=np.arange(5.0), b=np.eye(2))
    content = bytearray(stream.getvalue())
    content[at % len(content) : at % len(content) + len(junk)] = junk
    try:
        found = read_npz(io.BytesIO(content))
    except ValueError:
        return
    assert sum(array.nbytes for array in found.values()) <= len(content)


def test_objects_are_refused() -> None:
    stream = io.BytesIO()
    np.savez(stream, a=np.array([{}], dtype=object))
    with pytest.raises(ValueError, match="no plain array"):
        read_npz(stream)
