"""Re-exports of library names, brought to one canonical name."""

from __future__ import annotations

from functools import lru_cache

_EXACT = {
    "torch.utils.data.dataloader.DataLoader": "torch.utils.data.DataLoader",
    "torch.utils.data.dataloader.default_collate": "torch.utils.data.default_collate",
    "torch.utils.data._utils.collate.default_collate": "torch.utils.data.default_collate",
    "torch.autocast_mode.autocast": "torch.autocast",
    "torch.amp.autocast": "torch.autocast",
    "torch.amp.autocast_mode.autocast": "torch.autocast",
    "torch.cuda.amp.autocast_mode.autocast": "torch.cuda.amp.autocast",
    "torch.cpu.amp.autocast_mode.autocast": "torch.cpu.amp.autocast",
    "torch.amp.grad_scaler.GradScaler": "torch.amp.GradScaler",
    "torch.cuda.amp.grad_scaler.GradScaler": "torch.cuda.amp.GradScaler",
    "torch.autograd.grad_mode.no_grad": "torch.no_grad",
    "torch.autograd.no_grad": "torch.no_grad",
    "torch.autograd.grad_mode.inference_mode": "torch.inference_mode",
    "torch.autograd.inference_mode": "torch.inference_mode",
    "torch.autograd.grad_mode.enable_grad": "torch.enable_grad",
    "torch.autograd.grad_mode.set_grad_enabled": "torch.set_grad_enabled",
    "torch.nn.parameter.Parameter": "torch.nn.Parameter",
    "torch.nn.parallel.distributed.DistributedDataParallel": (
        "torch.nn.parallel.DistributedDataParallel"
    ),
    "torch.nn.DataParallel": "torch.nn.parallel.DataParallel",
    "torch.nn.parallel.data_parallel.DataParallel": "torch.nn.parallel.DataParallel",
    "torch.serialization.save": "torch.save",
    "torch.serialization.load": "torch.load",
    "torch._tensor.Tensor": "torch.Tensor",
    "torch.multiprocessing.spawn.spawn": "torch.multiprocessing.spawn",
    "numba._get_thread_id": "numba.get_thread_id",
    "numba.np.ufunc.parallel.get_thread_id": "numba.get_thread_id",
    "numba.np.ufunc.parallel._get_thread_id": "numba.get_thread_id",
    "numba.np.ufunc.parallel._iget_thread_id": "numba.get_thread_id",
    "numba.parallel.get_thread_id": "numba.get_thread_id",
    "numba.np.ufunc.parallel.get_num_threads": "numba.get_num_threads",
    "numba.np.ufunc.parallel.set_num_threads": "numba.set_num_threads",
    "numba.misc.special.prange": "numba.prange",
    "numba.misc.special.pndindex": "numba.pndindex",
    "numba.special.prange": "numba.prange",
    "numba.experimental.jitclass.jitclass": "numba.experimental.jitclass",
    "numba.jitclass": "numba.experimental.jitclass",
    "concurrent.futures.thread.ThreadPoolExecutor": "concurrent.futures.ThreadPoolExecutor",
    "concurrent.futures.process.ProcessPoolExecutor": "concurrent.futures.ProcessPoolExecutor",
    "multiprocessing.dummy.Pool": "multiprocessing.pool.ThreadPool",
    "multiprocessing.context.Process": "multiprocessing.Process",
    "multiprocessing.process.BaseProcess": "multiprocessing.Process",
    "multiprocessing.pool.Pool": "multiprocessing.Pool",
    "triton.runtime.jit.jit": "triton.jit",
    "triton.runtime.jit.JITFunction": "triton.JITFunction",
    "triton.runtime.autotuner.autotune": "triton.autotune",
    "triton.runtime.autotuner.heuristics": "triton.heuristics",
    "triton.runtime.autotuner.Config": "triton.Config",
    "einops.einops.rearrange": "einops.rearrange",
    "einops.einops.reduce": "einops.reduce",
    "einops.einops.repeat": "einops.repeat",
    "accelerate.accelerator.Accelerator": "accelerate.Accelerator",
    "transformers.trainer.Trainer": "transformers.Trainer",
    "transformers.training_args.TrainingArguments": "transformers.TrainingArguments",
    "numba_cuda.numba.cuda": "numba.cuda",
    "numpy.concat": "numpy.concatenate",
    "numpy.row_stack": "numpy.vstack",
    "numpy.asarray_chkfinite": "numpy.asarray",
    "numpy.random.sample": "numpy.random.random",
    "numpy.random.ranf": "numpy.random.random",
    "numpy.random.mtrand.rand": "numpy.random.rand",
    "numpy.true_divide": "numpy.divide",
    "numpy.pow": "numpy.power",
}

_PREFIXES = (
    ("pytorch_lightning.trainer.trainer.", "lightning.pytorch."),
    ("pytorch_lightning.core.module.", "lightning.pytorch."),
    ("pytorch_lightning.core.lightning.", "lightning.pytorch."),
    ("pytorch_lightning.core.datamodule.", "lightning.pytorch."),
    ("pytorch_lightning.", "lightning.pytorch."),
    ("lightning.pytorch.trainer.trainer.", "lightning.pytorch."),
    ("lightning.pytorch.core.module.", "lightning.pytorch."),
    ("lightning.Trainer", "lightning.pytorch.Trainer"),
    ("lightning.LightningModule", "lightning.pytorch.LightningModule"),
    ("lightning.LightningDataModule", "lightning.pytorch.LightningDataModule"),
    ("lightning.Fabric", "lightning.fabric.Fabric"),
    ("lightning_fabric.", "lightning.fabric."),
    ("numba.core.decorators.", "numba."),
    ("numba.decorators.", "numba."),
    ("numba.np.ufunc.decorators.", "numba."),
    ("numba.npyufunc.decorators.", "numba."),
    ("numba.cuda.decorators.", "numba.cuda."),
    ("numba_cuda.numba.cuda.", "numba.cuda."),
    ("numba.core.types.", "numba.types."),
    ("torch.functional.", "torch."),
    ("torch._C._nn.", "torch.nn.functional."),
    ("torch.utils.data.dataset.", "torch.utils.data."),
    ("torch.utils.data.sampler.", "torch.utils.data."),
    ("numpy.core.numeric.", "numpy."),
    ("numpy.core.fromnumeric.", "numpy."),
    ("numpy.core.multiarray.", "numpy."),
    ("numpy._core.numeric.", "numpy."),
    ("numpy._core.fromnumeric.", "numpy."),
    ("numpy._core.multiarray.", "numpy."),
    ("numpy.lib.function_base.", "numpy."),
    ("numpy.lib.shape_base.", "numpy."),
    ("cupyx.jit._interface.", "cupyx.jit."),
    ("cupy._core.raw.", "cupy."),
    ("cupy.core.raw.", "cupy."),
    ("triton.language.core.", "triton.language."),
)

# What ``from numba import *`` gives a program; the names of its number types are left out,
# as they are mostly called.
STARRED = {
    "numba": (
        "cfunc", "experimental", "get_num_threads", "guvectorize", "jit", "jit_module", "njit",
        "prange", "set_num_threads", "stencil", "vectorize",
    ),
}  # fmt: skip


@lru_cache(maxsize=4096)
def canonical(name: str) -> str:
    """The name under which the tables and the rules know what ``name`` refers to.

    >>> canonical("torch.nn.modules.conv.Conv2d")
    'torch.nn.Conv2d'
    """
    if name in _EXACT:
        return _EXACT[name]
    for prefix, target in _PREFIXES:
        if name.startswith(prefix):
            renamed = target + name[len(prefix) :]
            return _EXACT.get(renamed, renamed)
    return _in_package(name)


def _in_package(name: str) -> str:
    """Classes by the package that exports them, not the module that defines them."""
    parts = name.split(".")
    if name.startswith("torch.nn.modules.") and parts[-1][:1].isupper():
        short = f"torch.nn.{parts[-1]}"
        return _EXACT.get(short, short)
    if name.startswith("torch.optim.") and len(parts) == 4 and parts[-1][:1].isupper():
        return f"torch.optim.{parts[-1]}" if parts[2] != "lr_scheduler" else name
    return name
