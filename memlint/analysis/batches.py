"""What the source of a program holds whose loaders feed a CUDA device."""

from __future__ import annotations

from memlint.analysis.loader_calls import may_make_loader
from memlint.late_pattern import late_pattern
from memlint.rule import Needs

MADE = late_pattern(r"DataLoader\s*\(")

LOADERS_THAT_FEED_CUDA = Needs(
    {"DataLoader", MADE},
    {"torch"},
    {".to(", "cuda", "gpu", "prepare("},
    units=[
        # Made, handed over, subclassed or renamed; in annotations it is none of these.
        {
            "DataLoader as",
            MADE,
            late_pattern(r"partial\(\s*[\w.]*DataLoader"),
            late_pattern(r"class \w+\([^)]*DataLoader"),
            late_pattern(r"=\s*[\w.]*DataLoader\b"),
            late_pattern(r"[\"']\s*:\s*[\w.]*DataLoader\b"),
        },
        {".to(", "cuda", "gpu", "copy_(", "prepare(", ".fit("},
    ],
    also={"pin_memory"},
    across={MADE},
    classwide=True,
    places=may_make_loader,
)
