"""The HTML report: what stands in it, and that nothing else does."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from importlib import resources
from itertools import pairwise
from typing import Any

import jsonschema
import pytest

pytest.importorskip("jinja2")

from memlint.report.html.cards import Sources
from memlint.report.html.page import MOST_CARDS, render_page
from memlint.report.html.recorded import recorded
from memlint.report.html.timeline import MOST_LANES
from memlint.source.model import Source
from memlint.tracer.evidence_file import evidence_of_document
from tests.report import evidence_samples as samples
from tests.report.markup import Element, parsed

HOSTILE = "</script></style></title>--><img src=x onerror=hack()>\"'><svg onload=hack()>{{ 7*7 }}"


def page_of(document: Any, model: str | None = samples.MODEL) -> str:
    evidence, known = evidence_of_document(document), recorded(document)
    source = None if model is None else Source(samples.PATH, model)
    return render_page(
        evidence.meta, evidence.findings, known, Sources(lambda path: source, known.sources())
    )


@pytest.fixture(scope="module")
def page() -> Element:
    return parsed(page_of(samples.document()))


def section(page: Element, name: str) -> str:
    return page.with_id(name).words


def test_a_finding_tells_all_that_is_known_of_it(page: Element) -> None:
    card = next(one for one in page.all("details") if "data-finding" in one.attributes)
    text = card.words
    for part in (
        "MEM308 transposed-stream confirmed src/model.py:7:16 29.3 ms a step",
        "Write instead make the array dense once, where it is transposed: .contiguous()",
        "Fix add .contiguous() (safe)",
        "1 time a step, 18.9 MB",
        "As it is 21.2 ms",
        "Alternative 10.0 ms",
        "Conversion 2.50 ms once for 4 uses",
        "Ratio 2.12\N{MULTIPLICATION SIGN} 95 % interval 1.91 to 2.54",
        "Net ratio 1.67\N{MULTIPLICATION SIGN}",
        "Saved 29.3 ms 6.1% of a step",
        "src/model.py:7:16 its axes are exchanged here",
        "float32[16, 256, 128] with strides (32768, 1, 256) on cpu",
        "Layout born at src/model.py:7",
        "the same either way",
    ):
        assert part in text, part
    (link,) = card.all("a")
    assert link.attributes["href"] == "https://memlint.readthedocs.io/rules/transposed-stream/"
    (marked,) = card.all("mark")
    assert marked.text == "grid.flatten(2).transpose(1, 2)"
    (hit,) = card.of_class("hit")
    assert hit.text.startswith("7        return grid.")
    numbers = [row.text for row in card.of_class("excerpt")[0].all("th")][2:]
    assert numbers == ["4", "5", "6", "7", "8", "9", "10"]


def test_findings_keep_their_order_and_their_verdicts(page: Element) -> None:
    cards = [one for one in page.all("details") if "data-finding" in one.attributes]
    assert [one.attributes["data-verdict"] for one in cards] == [
        "confirmed", "inconclusive", "observed", "refuted", "not_reached",
    ]  # fmt: skip
    costs = [one.of_class("cost")[0].text for one in cards]
    assert costs == ["29.3 ms a step", "perhaps 400 µs a step", "18.9 MB a step", "leave it", ""]
    offered = [one.attributes.get("value") for one in page.with_id("filter").all("input")][:-1]
    assert offered == ["confirmed", "observed", "inconclusive", "refuted", "not_reached"]


def test_what_was_not_measured_is_not_shown() -> None:
    seen = samples.evidence("observed", ratio=2.0)
    document = samples.document(
        findings=[samples.finding("MEM1", "x", samples.location(7, 16, 47), seen)]
    )
    card = parsed(page_of(document)).of_class("card")[0]
    assert not card.of_class("amounts")
    assert not card.of_class("ratio-plot")


def test_a_source_that_has_changed_is_not_shown(page: Element) -> None:
    gone = parsed(page_of(samples.document(), model=None))
    card = gone.of_class("card")[0]
    assert not list(card.all("mark"))
    assert "return grid.flatten(2).transpose(1, 2) The line as it ran" in card.words
    document = samples.document(sites=[])
    assert "The source is not here" in parsed(page_of(document, model=None)).text


def test_phases(page: Element) -> None:
    text = section(page, "phases")
    assert "forward 202 ms 42.0% 25" in text
    assert "In all 480 ms 60" in text


def test_timeline(page: Element) -> None:
    timeline = page.with_id("timeline")
    bars = [rect for svg in timeline.of_class("bars") for rect in svg.all("rect")]
    assert len(bars) == 60
    rows = {row.children[0].text: row for row in timeline.all("tbody").__next__().children}
    assert set(rows) == {
        "no line of the program", *(f"src/model.py:{n}" for n in (6, 10, 11, 15, 18))
    }  # fmt: skip
    assert "tokens = tokens + self.attention" in rows["src/model.py:10"].text
    assert "12 operations, the shortest, were left out" in section(page, "timeline")


def test_memory(page: Element) -> None:
    memory = page.with_id("memory")
    text = section(page, "memory")
    assert "peak 400 MB at 215 ms" in text
    assert "What held the peak of 400 MB on cpu" in text
    rows = [row.words for row in next(memory.all("tbody")).children]
    assert rows == [
        "aten::linear 200 MB 50.0% src/model.py:11 return tokens + self.mlp(self.norm2(tokens))",
        "aten::native_layer_norm 100 MB 25.0% src/model.py:10 "
        "tokens = tokens + self.attention(self.norm1(tokens))",
        "no operation of the step 50.0 MB 12.5%",
        "others 50.0 MB 12.5%",
    ]


def test_journeys(page: Element) -> None:
    journeys = page.with_id("journeys").of_class("journey")
    first = journeys[0].words
    assert "born 27 times model.py:7 Block.embed" in first
    assert "taken by aten.add.Tensor 54 times model.py:10 Block.forward" in first
    assert "converted by aten.clone.default 27 times, 56.6 MB written" in first
    assert "one copy: 900 µs" in first
    assert "longer in all: 29.3 ms" in first
    kinds = [one.classes[0] for one in next(journeys[0].all("ol")).children]
    assert kinds == ["born", "used", "used", "used", "converted"]
    second = journeys[1].words
    assert "It was never copied to another layout." in second
    assert "Neither a copy nor what its uses took longer was measured." in second


def test_the_run(page: Element) -> None:
    text = section(page, "run")
    assert "PyTorch 2.13.0" in text
    assert "Cost of tracing about 6.80 µs an operation, 84.0 ms in all" in text
    assert "other threads and DataLoader workers are not seen" in text


def test_what_an_older_file_does_not_hold_is_said() -> None:
    document = samples.document()
    del document["profile"], document["journeys"]
    for site in document["sites"]:
        del site["source"]
    page = parsed(page_of(document))
    assert "The file holds no profiled step" in section(page, "phases")
    assert "The file holds no profiled step" in section(page, "timeline")
    assert "The file holds no profiled step" in section(page, "memory")
    assert "were not recorded" in section(page, "journeys")
    unprofiled = parsed(page_of(samples.document(profile=None)))
    assert section(unprofiled, "memory") == section(page, "memory")
    assert "born 27 times" in section(unprofiled, "journeys")


def test_the_sample_is_what_a_trace_writes() -> None:
    schema = resources.files("memlint").joinpath("schemas/trace.schema.json").read_text("utf-8")
    jsonschema.validate(samples.document(), json.loads(schema))


def test_an_empty_trace_has_a_page() -> None:
    profile = {"step_ms": 0, "events": [], "events_left_out": 0, "phases": [], "memory": []}
    empty = samples.document(findings=[], sites=[], journeys=[], profile=profile)
    page = parsed(page_of(empty))
    assert "Nothing was found in what ran." in section(page, "findings")
    assert "The profiled step has no operations." in section(page, "timeline")
    assert "No layout but the row-major one" in section(page, "journeys")
    assert "No operation was noted" in section(page, "lines")


@pytest.mark.parametrize(
    "value",
    [float("nan"), float("inf"), -1.0, None, "long"],
    ids=["nan", "inf", "<0", "no", "text"],
)
def test_a_profile_that_cannot_be_drawn_is_refused(value: Any) -> None:
    document = samples.document()
    document["profile"]["events"][3]["us"] = value
    with pytest.raises((TypeError, ValueError)):
        recorded(document)


def skeleton(element: Element) -> Any:
    names = sorted(element.attributes)
    return element.name, names, [skeleton(one) for one in element.children]


@pytest.mark.parametrize("text", [HOSTILE, "`" + HOSTILE, "a\x00b\x1b[2J\u202ec\ud800"])
def test_no_text_of_the_program_becomes_markup(text: str) -> None:
    tame = samples.with_texts(samples.document(), lambda _: "name")
    wild = samples.with_texts(samples.document(), lambda _: text)
    page = page_of(wild, "\n" * 6 + text * 5 + "\n" * 12)
    tree = parsed(page)
    assert skeleton(tree) == skeleton(parsed(page_of(tame, "\n" * 6 + "name" * 40 + "\n" * 12)))
    assert not list(tree.all("img"))
    assert not re.search("[\x00-\x08\x0e-\x1f\u202a-\u202e]", page)
    if text == HOSTILE:
        assert tree.text.count(text) > 50


def test_only_pages_are_linked_to() -> None:
    document = samples.document()
    document["findings"][0]["url"] = "javascript:hack()"
    document["findings"][1]["url"] = "data:text/html,<script>hack()</script>"
    page = parsed(page_of(document))
    links = [str(one.attributes["href"]) for one in page.all("a")]
    assert len(links) == 8 + 3
    assert all(one.startswith(("#", "https://memlint.readthedocs.io/")) for one in links)


def test_nothing_is_loaded(page: Element) -> None:
    for one in page.all():
        assert not one.attributes.keys() & {"src", "srcset", "style", "background", "xlink:href"}
        assert not [name for name in one.attributes if name.startswith("on")]
        assert one.name not in {"link", "iframe", "object", "embed", "base", "img", "use"}
    (style,), (script,) = page.all("style"), page.all("script")
    assert "url(" not in style.text
    assert "@import" not in style.text
    assert "</" not in style.text + script.text
    policy = next(one for one in page.all("meta") if "http-equiv" in one.attributes)
    rules = dict(part.split(" ", 1) for part in str(policy.attributes["content"]).split("; "))
    assert rules["default-src"] == "'none'"
    for kind, element in (("style-src", style), ("script-src", script)):
        digest = base64.b64encode(hashlib.sha256(element.text.encode()).digest()).decode()
        assert rules[kind] == f"'sha256-{digest}'"


def test_the_page_can_be_read_without_seeing_it(page: Element) -> None:
    ids = [str(one.attributes["id"]) for one in page.all() if "id" in one.attributes]
    assert len(ids) == len(set(ids))
    for one in page.all():
        target = str(one.attributes.get("href", ""))
        assert not target.startswith("#") or target[1:] in ids
        named = one.attributes.get("aria-labelledby")
        assert named is None or named in ids
    assert len(list(page.all("h1"))) == 1
    levels = [int(one.name[1]) for one in page.all() if re.fullmatch("h[1-6]", one.name)]
    assert all(later <= before + 1 for before, later in pairwise(levels))
    for table in page.all("table"):
        assert list(table.all("caption"))
        heads = list(next(table.all("thead")).all("th"))
        assert heads
        assert all(one.attributes["scope"] == "col" and one.text for one in heads)
    for svg in page.all("svg"):
        outer = svg.parent
        if outer is not None and (outer.name == "svg" or "aria-hidden" in svg.attributes):
            continue
        if svg.attributes.get("aria-hidden") == "true":
            continue
        assert [one.name for one in svg.children[:2]] == ["title", "desc"]
        assert svg.attributes["role"] == "img"
    for one in page.all():
        if one.attributes.get("role") == "region":
            assert one.attributes["tabindex"] == "0"
            assert one.attributes["aria-label"]


def test_a_large_trace_makes_a_small_page() -> None:
    long_name = "a_function_with_a_rather_long_name_" * 10
    profile = samples.profile(events=5000, lines=700)
    for event in profile["events"]:
        event["name"] = f"aten::{long_name}"
    found = samples.findings() * 200
    sites = [
        {**samples.line(n, long_name), "operation": f"aten.{n}", "count": 1, "source": None}
        for n in range(1, 5001)
    ]
    journeys = samples.journeys() * 50
    document = samples.document(findings=found, sites=sites, profile=profile, journeys=journeys)
    text = page_of(document)
    assert len(text.encode()) < 3_000_000
    page = parsed(text)
    assert len([one for one in page.of_class("lane") if "axis-lane" not in one.classes]) == (
        MOST_LANES + 1
    )
    assert sum(len(list(one.all("rect"))) for one in page.of_class("bars")) == 5000
    findings = [one for one in page.all() if "data-finding" in one.attributes]
    assert len(findings) == len(found)
    assert sum(one.name == "details" for one in findings) == MOST_CARDS
    assert "4,700 further lines in the evidence file" in section(page, "lines")
    assert "80 further journeys in the evidence file" in section(page, "journeys")
