"""What the source of a program holds whose loaders feed a CUDA device."""

from __future__ import annotations

import re

from memlint.analysis.loader_calls import may_make_loader
from memlint.rule import Needs

MADE = re.compile(r"DataLoader\s*\(")

LOADERS_THAT_FEED_CUDA = Needs(
    {"DataLoader", MADE},
    {"torch"},
    {".to(", "cuda", "gpu", "prepare("},
    units=[
        # Made, handed over, subclassed or renamed; in annotations it is none of these.
        {
            "DataLoader as",
            MADE,
            re.compile(r"partial\(\s*[\w.]*DataLoader"),
            re.compile(r"class \w+\([^)]*DataLoader"),
            re.compile(r"=\s*[\w.]*DataLoader\b"),
            re.compile(r"[\"']\s*:\s*[\w.]*DataLoader\b"),
        },
        {".to(", "cuda", "gpu", "copy_(", "prepare(", ".fit("},
    ],
    also={"pin_memory"},
    across={MADE},
    classwide=True,
    places=may_make_loader,
)
