"""What a trace says of a finding, in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from memlint.findings import Finding

_LEFT_ALONE = "refuted"
_LEAST_SHARE = 0.0005


def is_refuted(finding: Finding) -> bool:
    """Whether a trace has shown that a finding costs nothing worth mentioning."""
    return finding.evidence is not None and finding.evidence.get("verdict") == _LEFT_ALONE


def style_of(finding: Finding) -> str:
    """The style that a finding is shown in: its severity's, or faint."""
    return "faint" if is_refuted(finding) else finding.severity.value


def verdict_of(evidence: Mapping[str, Any]) -> str:
    """The verdict as it is read: ``not reached``."""
    return str(evidence.get("verdict", "observed")).replace("_", " ")


def short_text(evidence: Mapping[str, Any]) -> str:
    """The verdict with the number that it follows: ``confirmed: 4.30 times as long with the
    conversion, 1.9 ms a step``."""
    ratio, saved = evidence.get("ratio"), evidence.get("ms_per_step")
    if ratio is not None and evidence.get("conversion_ms"):
        ratio = evidence["net_ratio"]
    if ratio is None:
        often = _often(evidence)
        return f"{verdict_of(evidence)}: {often}" if often else verdict_of(evidence)
    converted = " with the conversion" if evidence.get("conversion_ms") else ""
    text = f"{verdict_of(evidence)}: {ratio:.2f} times as long{converted}"
    if evidence.get("verdict") == "confirmed" and saved is not None:
        text += f", {saved:.3g} ms a step"
    return text


def long_text(evidence: Mapping[str, Any]) -> str:
    """All that was measured or counted, as one sentence."""
    verdict, parts = verdict_of(evidence), told(evidence)
    return f"{verdict}: {'; '.join(parts)}" if parts else verdict


def told(evidence: Mapping[str, Any]) -> list[str]:
    """What was counted, then what was measured, each as a part of a sentence."""
    parts = counted(evidence)
    if evidence.get("ratio") is not None:
        parts += _measured(evidence)
    if evidence.get("note"):
        parts.append(str(evidence["note"]))
    if evidence.get("ranks"):
        parts.append(_ranks(evidence["ranks"]))
    return parts


def counted(evidence: Mapping[str, Any]) -> list[str]:
    """What it is, where no line tells, how often it happened, what it moved and took, as far as
    it is known."""
    every = (_where(evidence), _often(evidence), _moved(evidence), _spent(evidence))
    return [one for one in every if one]


def _where(evidence: Mapping[str, Any]) -> str:
    """What a finding stands for that has no line."""
    operator, function = evidence.get("operator"), evidence.get("function")
    if operator is None:
        return ""
    return f"`{operator}` in `{function}`" if function else f"`{operator}`"


def _often(evidence: Mapping[str, Any]) -> str:
    count, steps = evidence.get("count"), evidence.get("steps", 1)
    if count is None:
        return ""
    if not steps:
        return f"{count} time{'' if count == 1 else 's'}"
    times = count / steps
    return f"{times:.4g} time{'' if times == 1 else 's'} a step"


def _moved(evidence: Mapping[str, Any]) -> str:
    nbytes = evidence.get("bytes")
    if not nbytes:
        return ""
    steps = evidence.get("steps")
    return f"{_bytes(nbytes / steps)} a step" if steps else f"{_bytes(nbytes)} in all"


def _bytes(nbytes: float) -> str:
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if nbytes >= size:
            return f"{nbytes / size:,.1f} {unit}"
    return f"{nbytes:,.4g} bytes"


def _share(share: float) -> str:
    """A share of the step; what is lost in rounding is not nothing."""
    return f"{share:.1%} of it" if abs(share) >= _LEAST_SHARE else "less than 0.1% of it"


def _spent(evidence: Mapping[str, Any]) -> str:
    """What the operations take that were seen, where a profiler has timed them."""
    spent, share, each = (evidence.get(one) for one in ("spent_ms_per_step", "spent_share",
                                                        "spent_ms"))  # fmt: skip
    if spent is None:
        return "" if each is None else f"{each:.3g} ms in all"
    text = f"{spent:.3g} ms a step"
    return text if share is None else f"{text}, {_share(share)}"


def _measured(evidence: Mapping[str, Any]) -> list[str]:
    parts = [
        f"as it is {evidence['as_is_ms']:.3g} ms, the alternative "
        f"{evidence['alternative_ms']:.3g} ms: {evidence['ratio']:.2f} times as long "
        f"[{evidence['ratio_low']:.2f}, {evidence['ratio_high']:.2f}]",
    ]
    if evidence["conversion_ms"]:
        parts.append(
            f"converting takes {evidence['conversion_ms']:.3g} ms for {evidence['uses']:.4g} "
            f"use{'' if evidence['uses'] == 1 else 's'}: {evidence['net_ratio']:.2f} times in all"
        )
    if evidence["verdict"] == "confirmed":
        saved = f"{evidence['ms_per_step']:.3g} ms a step to be saved"
        share = evidence.get("share_of_step")
        parts.append(saved if share is None else f"{saved}, {_share(share)}")
    elif evidence["verdict"] == _LEFT_ALONE:
        parts.append("leave it")
    else:
        parts.append("too uncertain to tell")
    if evidence.get("numerics") == "different":
        parts.append("the two give different numbers: this is a matter of correctness")
    return parts


def _ranks(ranks: Mapping[str, Any]) -> str:
    seen, every = ranks["seen"], ranks["all"]
    text = f"on {len(seen)} of {len(every)} ranks"
    if ranks["other_layouts"]:
        text += f", in another layout on {', '.join(map(str, ranks['other_layouts']))}"
    return text
