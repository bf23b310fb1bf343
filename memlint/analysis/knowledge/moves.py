"""Transfers of copies and moves: to another memory format, dtype, device or library."""

from __future__ import annotations

from dataclasses import replace

from memlint.analysis import axes
from memlint.analysis.axes import OPAQUE, Layout
from memlint.analysis.knowledge.compute import chosen_devices, chosen_dtype, formatted
from memlint.analysis.knowledge.kinds import device_types, dtype_of
from memlint.analysis.knowledge.model import Call
from memlint.analysis.knowledge.results import fresh, perhaps_view, tensors_in, view
from memlint.analysis.values import Absent, Const, Ref, Sequence, Tensor, Value

CUDA = frozenset({"cuda"})
CPU = frozenset({"cpu"})


def contiguous(call: Call) -> Value | None:
    """``contiguous(memory_format)``: a copy unless it is so already."""
    base = call.tensor
    if base is None:
        return None
    plain = axes.dense_any_rank() if base.sizes is None else axes.dense(base.sizes)
    given = call.get("memory_format", at=1)
    if given == Ref("torch.contiguous_format") or isinstance(given, Absent):
        already = axes.contiguous(base.layout)
        return _same_or(call, base, plain, already)
    if isinstance(given, Ref) and given.name in (
        "torch.channels_last",
        "torch.channels_last_3d",
    ):
        rank = 4 if given.name.endswith("last") else 5
        layout = axes.channels_last(base.sizes or (None,) * rank)
        return _same_or(call, base, layout, axes.channels_last_format(base.layout))
    return perhaps_view(call, base, OPAQUE, None)


def _same_or(call: Call, base: Tensor, layout: Layout, already: bool | None) -> Tensor:
    """The array itself where it has the layout already, else a copy in that layout."""
    if already:
        return view(call, base, layout if base.sizes is not None else base.layout)
    made = perhaps_view(call, base, layout, None if already is None else True)
    return replace(made, assumed=base.assumed and already is None)


def clone(call: Call) -> Value | None:
    """A copy with the strides kept, unless a memory format is asked for."""
    base = call.tensor
    if base is None:
        return None
    layout = formatted(call, axes.preserved(base.layout))
    return fresh(call, layout, of=(base,), dtype=base.dtype)


def cast(call: Call) -> Value | None:
    """``float()``, ``half()`` and so on; ``options`` names the dtype."""
    dtype = call.options[0]
    assert isinstance(dtype, str)
    base = call.tensor
    return None if base is None else _moved(call, base, dtype, base.devices)


def to_device(call: Call) -> Value | None:
    """``cuda()`` and ``cpu()``; ``options`` names the device."""
    device = call.options[0]
    assert isinstance(device, str)
    base = call.tensor
    return None if base is None else _moved(call, base, base.dtype, frozenset({device}))


def to(call: Call) -> Value | None:
    """``to(device | dtype | other, memory_format=)``."""
    base = call.tensor
    if base is None:
        return None
    dtype: str | None = base.dtype
    devices = base.devices
    named = [call.args.keywords[n] for n in ("device", "dtype", "other") if n in call.args.keywords]
    for value in (*call.args.positional[1:3], *named):
        if isinstance(value, Tensor):
            dtype, devices = value.dtype, value.devices
        elif value == Const(None) or (isinstance(value, Const) and isinstance(value.value, bool)):
            continue
        elif dtype_of(value) is not None:
            dtype = dtype_of(value)
        elif device_types(value):
            devices = device_types(value)
        elif value is call.args.keywords.get("dtype"):
            dtype = None
        else:
            devices, dtype = frozenset(), dtype if "device" in call.args.keywords else None
    return _moved(call, base, dtype, devices)


def as_type(call: Call) -> Value | None:
    """``type(dtype)`` and ``type_as(other)``."""
    base, given = call.tensor, call.get("dtype", "other", at=1)
    if base is None or isinstance(given, Absent):
        return None
    if isinstance(given, Tensor):
        return _moved(call, base, given.dtype, given.devices)
    return _moved(call, base, dtype_of(given), base.devices)


def _moved(call: Call, base: Tensor, dtype: str | None, devices: frozenset[str]) -> Tensor:
    same_place = devices == base.devices and len(devices) < 2
    elsewhere = bool(devices and base.devices and not devices & base.devices)
    other_dtype = None not in (dtype, base.dtype) and dtype != base.dtype
    forced = call.get("copy") == Const(True)
    copies: bool | None = None
    if elsewhere or other_dtype or forced:
        copies = True
    elif same_place and dtype is not None and dtype == base.dtype:
        copies = False
    layout = axes.converted(base.layout)
    if copies is not True and layout != base.layout:
        layout = base.layout if copies is False else _either(base.layout)
    asked = formatted(call, layout)
    if asked != layout:
        layout, copies = asked, True if copies else None
    made = perhaps_view(call, base, layout, copies)
    pinned = base.pinned if copies is False else None
    loaders = base.loaders
    return replace(made, dtype=dtype, devices=devices, pinned=pinned, loaders=loaders)


def _either(layout: Layout) -> Layout:
    """A layout or its dense copy: only the sizes are sure."""
    return OPAQUE if layout.sizes is None else axes.unknown_strides(layout.sizes)


def pin(call: Call) -> Value | None:
    """A copy in page-locked memory."""
    base = call.tensor
    if base is None:
        return None
    is_dense = axes.contiguous(base.layout) is True
    made = perhaps_view(call, base, base.layout if is_dense else _either(base.layout), None)
    return replace(made, pinned=True, devices=CPU)


def shared_with(call: Call) -> Value | None:
    """The same memory as an array of another library; ``options`` names the library."""
    lib = call.options[0]
    assert isinstance(lib, str)
    base = call.tensor
    if base is None:
        return None
    base = replace(base, lib=lib)
    return view(call, base, base.layout)


def as_tensor(call: Call) -> Value | None:
    """``torch.as_tensor``: the array itself where dtype and device allow it."""
    base = call.tensor
    if base is None:
        return _from_data(call)
    base = replace(base, lib="torch")
    dtype = chosen_dtype(call, base.dtype, at=1)
    return _moved(call, base, dtype, chosen_devices(call, base.devices))


def tensor(call: Call) -> Value | None:
    """``torch.tensor``: always a copy."""
    base = call.tensor
    if base is None:
        return _from_data(call)
    layout = axes.converted(base.layout)
    made = fresh(call, layout, of=(base,), dtype=chosen_dtype(call, base.dtype))
    default = base.devices if base.lib == "torch" else CPU
    return replace(made, devices=chosen_devices(call, default))


def _from_data(call: Call) -> Value | None:
    """An array from numbers: row-major, in the shape of the nested lists where known."""
    if tensors_in(call.args.positional[:1]):
        return None
    sizes = _nested_sizes(call.first)
    if sizes is None and not isinstance(call.first, Sequence):
        return None
    layout = axes.dense_any_rank() if sizes is None else axes.dense(sizes)
    cpu = CPU if call.lib != "cupy" else CUDA
    dtype = chosen_dtype(call, None)
    return fresh(call, layout, dtype=dtype, devices=chosen_devices(call, cpu))


def _nested_sizes(value: Value) -> tuple[int, ...] | None:
    if isinstance(value, Const):
        return () if isinstance(value.value, int | float | complex) else None
    if not isinstance(value, Sequence) or value.items is None:
        return None
    inner = {_nested_sizes(item) for item in value.items}
    if not inner:
        return (0,)
    only = inner.pop()
    return None if inner or only is None else (len(value.items), *only)


_WITH_AN_AXIS = frozenset({"ascontiguousarray", "asfortranarray"})


def in_order(call: Call) -> Value | None:
    """Numpy's ``array``, ``asarray``, ``copy`` and ``astype`` with their ``order``.

    ``options``: the default order, and whether they copy ("always" or "if needed").
    """
    base = call.tensor
    order = str(call.options[0])
    if base is None:
        return _from_data(call) if call.get("order") in (Absent(), Const("C"), Const("K")) else None
    if call.name in _WITH_AN_AXIS and base.layout.sizes == ():
        # Numpy gives these at least one axis.
        if call.lib != "numpy":
            return perhaps_view(call, base, OPAQUE, None)
        base = replace(base, layout=axes.dense((1,)))
    given = call.get("order")
    if isinstance(given, Const) and isinstance(given.value, str):
        order = given.value
    elif not isinstance(given, Absent):
        return perhaps_view(call, base, OPAQUE, None)
    default = None
    position = None if call.name == "copy" else 1
    dtype = default or chosen_dtype(call, base.dtype, at=position)
    wanted = ordered(base.layout, order)
    copies = call.options[1] == "always"
    if not isinstance(call.get("copy"), Absent):
        copies = call.get("copy") == Const(True)
        if not copies and call.get("copy") != Const(False):
            return perhaps_view(call, base, OPAQUE, None)
    libs = {call.lib, base.lib or call.lib}
    moved = "cupy" in libs and len(libs) > 1
    base = replace(base, lib=call.lib)
    if copies or moved or (dtype is not None and base.dtype is not None and dtype != base.dtype):
        made = replace(fresh(call, wanted, of=(base,), dtype=dtype), loaders=base.loaders)
        return replace(made, devices=CUDA if call.lib == "cupy" else made.devices)
    return _if_needed(call, base, order, dtype)


def _if_needed(call: Call, base: Tensor, order: str, dtype: str | None) -> Tensor:
    has = {
        "C": axes.contiguous(base.layout),
        "F": axes.contiguous(axes.reverse(base.layout)),
    }.get(order, True)
    sure = dtype is not None and dtype == base.dtype
    if isinstance(call.get("dtype", at=1), Absent):
        sure = True
    wanted = ordered(base.layout, order) if order in "CF" else base.layout
    if has is False:
        return perhaps_view(call, base, wanted, True)
    layout = wanted if sure or order in "CF" or wanted == axes.preserved(wanted) else OPAQUE
    made = perhaps_view(call, base, layout, False if has and sure else None)
    return replace(made, dtype=dtype)


def ordered(layout: Layout, order: str) -> Layout:
    """The layout of a copy in one of numpy's orders."""
    sizes = layout.sizes
    dense = axes.dense_any_rank() if sizes is None else axes.dense(sizes)
    reversed_ = axes.reverse(dense) if sizes is None else axes.fortran(sizes)
    if order == "C":
        return dense
    loose = layout.loose
    if order == "F":
        return OPAQUE if loose is not None and loose.gapped else reversed_
    if order == "K":
        stretched = any(axis.memory is None and axis.size != 1 for axis in layout.axes or ())
        if stretched or (loose is not None and loose.broadcast):
            return OPAQUE if sizes is None else axes.unknown_strides(sizes)
        return axes.elementwise([layout], True)
    row = axes.contiguous(layout)
    column = axes.contiguous(axes.reverse(layout))
    if order == "A" and row is not None and column is not None:
        return reversed_ if column and not row else dense
    return OPAQUE


def ravel(call: Call) -> Value | None:
    """One axis: a view where the elements lie in order, else a copy."""
    base = call.tensor
    if base is None:
        return None
    order = call.get("order", at=1)
    if not isinstance(order, Absent) and order != Const("C"):
        return perhaps_view(call, base, axes.dense((None,)), None)
    layout, copies = axes.flatten(base.layout)
    in_order = axes.contiguous(base.layout)
    if copies is False and not in_order:
        copies = None
    if copies is None:
        layout = axes.unknown_strides(layout.sizes or (None,))
    return perhaps_view(call, base, layout, copies)


def flat_copy(call: Call) -> Value | None:
    """Numpy's ``flatten``: one axis, always a copy."""
    base = call.tensor
    if base is None:
        return None
    layout = axes.flatten(axes.dense(base.sizes or (None,)))[0]
    return fresh(call, layout, of=(base,), dtype=base.dtype)
