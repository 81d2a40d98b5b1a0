"""Runs transformers' Qwen2.5-VL in true fp64.

`.double()` alone is not enough: norms, softmaxes, rotary tables, the vision rotation and the loss ask for fp32 by
name inside transformers. Its code runs unchanged here, but every `torch.float32`, `torch.float` and `.float()` in it
means fp64.
"""

import contextlib

import torch
import transformers.loss.loss_utils as loss_utils
import transformers.modeling_rope_utils as rope_utils
from transformers.models.qwen2_5_vl import modeling_qwen2_5_vl as modeling

MODULES = (modeling, loss_utils, rope_utils)


class _Torch64:
    """The torch module, with fp64 under the names of fp32."""

    float32 = torch.float64
    float = torch.float64

    def __getattr__(self, name):
        return getattr(torch, name)


@contextlib.contextmanager
def true_fp64():
    """Models must be made *and* run inside: the inverse frequencies of the rotary tables are computed when made."""
    single, default = torch.Tensor.float, torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    torch.Tensor.float = torch.Tensor.double
    for module in MODULES:
        module.torch = _Torch64()
    try:
        yield
    finally:
        for module in MODULES:
            module.torch = torch
        torch.Tensor.float = single
        torch.set_default_dtype(default)


def check_tables(model):
    """The inverse frequencies are what an easy mistake leaves in fp32."""
    for name, module in model.named_modules():
        if not hasattr(module, "inv_freq"):
            continue
        got = module.inv_freq
        is_vision = "visual" in name
        config = module.config
        dim = config.hidden_size // (config.num_heads if is_vision else config.num_attention_heads)
        dim = dim // 2 if is_vision else dim
        theta = config.rope_parameters["rope_theta"]
        want = torch.tensor([theta ** (-2.0 * i / dim) for i in range(dim // 2)], dtype=torch.float64)
        assert got.dtype == torch.float64, (name, got.dtype)
        assert torch.allclose(got, want, rtol=1e-15, atol=0), (name, got, want)
