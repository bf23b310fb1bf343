"""MEM305, MEM306 and MEM308 on small programs that run."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from memlint.tracer.replay import measure
from tests.tracer.tracing import line_of, traced

A = torch.randn(256, 256)


# MEM305


def test_a_call_that_gives_back_its_tensor() -> None:
    def program() -> None:
        for _ in range(3):
            torch.exp(A.contiguous())

    with traced() as run:
        program()
    (one,) = run.sightings("redundant-contiguous")
    assert (one.site.line, one.count) == (line_of(program, "contiguous"), 3)


def test_a_call_that_copies_now_and_then_is_not_redundant() -> None:
    with traced() as run:
        for x in (A, A.t()):
            x.contiguous()
    assert run.sightings("redundant-contiguous") == []


def test_a_call_that_undoes_an_exchange_is_not_called_redundant() -> None:
    stored = A.t().contiguous()
    with traced() as run:
        for _ in range(3):
            torch.exp(stored.t().t().contiguous())
    assert [one.exchanged for one in run.asked] == [3]
    assert run.sightings("redundant-contiguous") == []


def test_the_same_numbers_made_dense_at_two_places() -> None:
    def program() -> None:
        turned = A.t()
        torch.exp(turned.contiguous())
        torch.tanh(turned.contiguous())

    with traced() as run:
        program()
    (one,) = run.sightings("redundant-contiguous")
    assert one.site.line == line_of(program, "torch.tanh")
    assert one.related[0][0].line == line_of(program, "torch.exp")
    assert one.nbytes == 2 * 256 * 256 * 4


def test_a_copy_that_is_handed_on_is_sound() -> None:
    with traced() as run:
        dense = A.t().contiguous()
        torch.exp(dense)
        torch.tanh(dense)
    assert run.sightings("redundant-contiguous") == []


def test_numbers_that_changed_between_are_copied_for_a_reason() -> None:
    x = A.clone()
    with traced() as run:
        x.t().contiguous()
        x.add_(1)
        x.t().contiguous()
    assert run.sightings("redundant-contiguous") == []


# MEM306


def test_one_copy_in_every_iteration() -> None:
    def program() -> None:
        for _ in range(5):
            dense = A.t().contiguous()
            torch.exp(dense)

    with traced() as run:
        program()
    (one,) = run.sightings("contiguous-in-loop")
    assert (one.site.line, one.count) == (line_of(program, "contiguous"), 4)
    assert one.nbytes == 4 * 2 * 256 * 256 * 4


def test_one_copy_before_the_loop_is_sound() -> None:
    with traced() as run:
        dense = A.t().contiguous()
        for _ in range(5):
            torch.exp(dense)
    assert run.sightings("contiguous-in-loop") == []


def test_other_numbers_in_every_iteration_are_sound() -> None:
    with traced() as run:
        for n in range(5):
            x = A + n
            x.t().contiguous()
            del x
    assert run.sightings("contiguous-in-loop") == []


def test_a_weight_that_is_trained_is_copied_for_a_reason() -> None:
    weight = nn.Parameter(A.clone())
    optimizer = torch.optim.SGD([weight], lr=0.1)
    with traced(warmup=0) as run:
        for _ in range(4):
            weight.t().contiguous().sum().backward()
            optimizer.step()
            optimizer.zero_grad()
    assert run.sightings("contiguous-in-loop") == []


def test_slices_of_one_array_are_different_numbers() -> None:
    heads = torch.randn(4, 256, 256)
    with traced() as run:
        for n in range(4):
            heads[n].t().contiguous()
    assert run.sightings("contiguous-in-loop") == []


# MEM308


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(64)
        self.linear = nn.Linear(64, 64)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + torch.relu(self.linear(self.norm(x)))


class Encoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, 64, 4, stride=4)
        self.blocks = nn.Sequential(*[Block() for _ in range(4)])

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.blocks(self.patches(image).flatten(2).transpose(1, 2))
        return out


class DenseEncoder(Encoder):
    def forward(self, image: torch.Tensor) -> torch.Tensor:
        x = self.patches(image).flatten(2).transpose(1, 2).contiguous()
        out: torch.Tensor = self.blocks(x)
        return out


IMAGE = torch.randn(4, 3, 64, 64)


def test_tokens_that_stay_transposed_through_the_blocks() -> None:
    model = Encoder()
    with traced() as run, torch.no_grad():
        for _ in range(2):
            model(IMAGE)
    (one,) = run.sightings("transposed-stream")
    assert one.site.line == line_of(Encoder.forward, "transpose(1, 2)")
    places = {site.line for site, _ in one.related}
    assert line_of(Block.forward, "self.norm(x)") in places
    (claim,) = one.claims
    assert {part.operation.short for part in claim.parts} == {"native_layer_norm", "add"}
    # Four blocks each: they are one round of one each, with the copy shared among four.
    assert [part.times for part in claim.parts] == [1, 1]
    assert claim.uses == 4
    assert one.count == 2 * 4


def test_the_stream_is_replayed_as_a_whole() -> None:
    model = Encoder()
    with traced() as run, torch.no_grad():
        model(IMAGE)
    (one,) = run.sightings("transposed-stream")
    measured = measure(one.claims[0], 0.1)
    assert measured is not None
    assert measured.same
    assert measured.uses == 4
    assert measured.comparison.as_is > 0


def test_tokens_that_are_made_dense_are_sound() -> None:
    model = DenseEncoder()
    with traced() as run, torch.no_grad():
        model(IMAGE)
    assert run.sightings("transposed-stream") == []


def test_images_in_channels_last_are_no_transposed_stream() -> None:
    layers = [nn.Sequential(nn.Conv2d(8, 8, 3, padding=1), nn.BatchNorm2d(8)) for _ in range(6)]
    model = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1))
    model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    with traced() as run, torch.no_grad():
        model(torch.randn(4, 8, 32, 32).to(memory_format=torch.channels_last))
    assert run.sightings("transposed-stream") == []
    assert run.sightings("strided-operand") == []


def test_a_layout_that_is_taken_once_is_no_stream() -> None:
    with traced() as run:
        for _ in range(6):
            functional.layer_norm(A.t(), (256,))
    assert run.sightings("transposed-stream") == []


def test_copies_of_the_stream_vanish_with_it() -> None:
    def program() -> None:
        x = A.t()
        for _ in range(2):
            torch.softmax(x, -1)
            torch.tanh(x.contiguous())
            x.reshape(-1)

    with traced() as run:
        program()
    (one,) = run.sightings("transposed-stream")
    vanishing = [part.vanishes for part in one.claims[0].parts]
    assert sorted(vanishing) == [False, True, True]
    assert measure(one.claims[0], 0.05) is not None


def test_heads_that_are_split_off_are_read_in_rows() -> None:
    """As rotary embeddings take them: their last axis is the fastest still."""
    x = torch.randn(4, 64, 128)
    with traced() as run:
        heads = x.view(4, 64, 4, 32).transpose(1, 2)
        for work in (torch.sin, torch.cos, torch.tanh, torch.exp):
            work(heads) + heads
    assert run.only("sin").births
    assert run.sightings("transposed-stream") == []


# Numbers that change where torch does not count it


def test_what_is_written_through_data_is_other_numbers() -> None:
    weight = A.clone()
    with traced() as run:
        for _ in range(4):
            weight.data.mul_(1.5)
            weight.t().contiguous()
    assert run.sightings("contiguous-in-loop") == []
    assert run.only("clone").versions == 4


def test_what_is_written_in_inference_mode_is_other_numbers() -> None:
    with traced() as run, torch.inference_mode():
        weight = A.clone()
        for _ in range(4):
            weight.mul_(1.5)
            weight.t().contiguous()
    assert run.sightings("contiguous-in-loop") == []


def test_what_numpy_writes_is_other_numbers() -> None:
    frame = np.zeros((256, 256), np.float32)
    shared = torch.from_numpy(frame)
    with traced() as run:
        for n in range(4):
            frame[...] = n
            shared.t().contiguous()
    assert run.sightings("contiguous-in-loop") == []


def test_writes_into_other_arrays_leave_the_numbers() -> None:
    weight, other = A.clone(), A.clone()
    with traced() as run:
        for _ in range(4):
            other.data.mul_(1.5)
            weight.t().contiguous()
    (one,) = run.sightings("contiguous-in-loop")
    assert one.count == 3


def test_calls_that_torch_makes_itself_cannot_be_left_out() -> None:
    table, tokens = nn.Embedding(8, 4, max_norm=1.0), torch.zeros(128, 128, dtype=torch.int64)
    with traced() as run, torch.no_grad():
        table(tokens)
    assert run.sightings("redundant-contiguous") == []
