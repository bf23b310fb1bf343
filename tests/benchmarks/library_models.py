"""Models as libraries ship them, small, with random weights and inputs: nothing is downloaded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

Loss = Callable[[nn.Module], torch.Tensor]


@dataclass(frozen=True, slots=True)
class LibraryModel:
    """A model of a library; ``make`` builds it, and what computes its loss on fixed inputs."""

    name: str
    library: str
    version: str
    make: Callable[[], tuple[nn.Module, Loss]]


def _images(name: str, size: int, **options: Any) -> tuple[nn.Module, Loss]:
    import timm

    model = timm.create_model(name, num_classes=10, **options)
    images, classes = torch.randn(4, 3, size, size), torch.randint(0, 10, (4,))
    return model, lambda net: nn.functional.cross_entropy(net(images), classes)


def vit() -> tuple[nn.Module, Loss]:
    """A vision transformer of four blocks, with dropout."""
    return _images("vit_tiny_patch16_224", 160, img_size=160, depth=4, drop_rate=0.1)


def convnext() -> tuple[nn.Module, Loss]:
    """A ConvNeXt of the smallest size, with stochastic depth."""
    return _images("convnext_atto", 96, drop_path_rate=0.1)


def resnet() -> tuple[nn.Module, Loss]:
    """The ResNet-50 that torchvision has too."""
    return _images("resnet50", 96)


def _words(classes: int) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.randint(0, classes, (4, 64)), torch.ones(4, 64, dtype=torch.long)


def bert() -> tuple[nn.Module, Loss]:
    """An encoder for masked words, four layers deep; some inputs are padded."""
    from transformers import BertConfig, BertForMaskedLM

    config = BertConfig(
        vocab_size=1000, hidden_size=128, num_hidden_layers=4, num_attention_heads=4,
        intermediate_size=512,
    )  # fmt: skip
    words, mask = _words(1000)
    mask[2:, 48:] = 0
    return BertForMaskedLM(config), lambda net: net(words, attention_mask=mask, labels=words).loss


def gpt2() -> tuple[nn.Module, Loss]:
    """A decoder with learned positions."""
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(vocab_size=1000, n_positions=128, n_embd=128, n_layer=4, n_head=4)
    words, mask = _words(1000)
    return GPT2LMHeadModel(config), lambda net: net(words, attention_mask=mask, labels=words).loss


def llama() -> tuple[nn.Module, Loss]:
    """A decoder with rotary positions and shared keys."""
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=1000, hidden_size=128, intermediate_size=384, num_hidden_layers=4,
        num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=128,
    )  # fmt: skip
    words, mask = _words(1000)
    return LlamaForCausalLM(config), lambda net: net(words, attention_mask=mask, labels=words).loss


def unet() -> tuple[nn.Module, Loss]:
    """A UNet that looks at a text, as latent diffusion has it."""
    from diffusers import UNet2DConditionModel

    model = UNet2DConditionModel(
        sample_size=32, block_out_channels=(32, 64), layers_per_block=1, norm_num_groups=8,
        cross_attention_dim=32, attention_head_dim=8,
        down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"),
        up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"),
    )  # fmt: skip
    noise, text = torch.randn(2, 4, 32, 32), torch.randn(2, 16, 32)
    times = torch.randint(0, 1000, (2,))
    return model, lambda net: (net(noise, times, text).sample - noise).square().mean()


def gcn() -> tuple[nn.Module, Loss]:
    """Two graph convolutions over a random graph."""
    from torch_geometric.nn import GCN

    model = GCN(64, 64, num_layers=2, out_channels=7, dropout=0.5)
    nodes, edges = torch.randn(2000, 64), torch.randint(0, 2000, (2, 10_000))
    classes = torch.randint(0, 7, (2000,))
    return model, lambda net: nn.functional.cross_entropy(net(nodes, edges), classes)


MODELS = (
    LibraryModel("ViT", "timm", "1.0.31", vit),
    LibraryModel("ConvNeXt", "timm", "1.0.31", convnext),
    LibraryModel("ResNet-50", "timm", "1.0.31", resnet),
    LibraryModel("BERT", "transformers", "5.24.0", bert),
    LibraryModel("GPT-2", "transformers", "5.24.0", gpt2),
    LibraryModel("Llama", "transformers", "5.24.0", llama),
    LibraryModel("UNet", "diffusers", "0.42.1", unet),
    LibraryModel("GCN", "torch-geometric", "2.8.1", gcn),
)
"""The versions are those that the findings were read of."""
