"""What networks, and the methods that run them, are called."""

from __future__ import annotations

import re

from memlint.late_pattern import late_pattern

NETWORK_NAME = late_pattern(
    r"(^|_)(model|net|network|backbone|encoder|decoder|generator|discriminator|critic|actor|unet|"
    r"policy|transformer|classifier|student|teacher|cell|rnn|lstm|gru|gpt|bert|vit|cnn|mlp|gcn|gnn|"
    r"vae|autoencoder|vgg|resnet|gen|disc?)"
    r"(_?[a-z]|\d*)$|"
    r"^net(_?[A-Za-z]|\d*)$",
    re.IGNORECASE,
)
# Methods by which models of libraries are run, other than by calling them.
RUNNING = frozenset(
    {"get_image_features", "get_text_features", "get_audio_features", "encode_image",
     "encode_text", "forward_features", "extract_features"}
)  # fmt: skip
