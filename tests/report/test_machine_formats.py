"""JSON, SARIF and workflow commands."""

from __future__ import annotations

import json
from importlib import resources
from typing import Any

import jsonschema
import pytest

from memlint.findings import FileError, Location, Report
from memlint.linter.rules import all_rules
from memlint.report import github, json_report, sarif
from memlint.report.view import View
from tests.report.conftest import Samples


def schema() -> Any:
    return json.loads(
        resources.files("memlint").joinpath("schemas/check.schema.json").read_text("utf-8")
    )


def test_json_is_as_its_schema_says(samples: Samples) -> None:
    document = json.loads("".join(json_report.render(samples.report(), View())))
    jsonschema.Draft202012Validator.check_schema(schema())
    jsonschema.validate(document, schema())
    assert document["findings"][1] == {
        "code": "MEM201",
        "name": "missing-pin-memory",
        "severity": "warning",
        "confidence": "high",
        "path": "src/train.py",
        "cell": None,
        "location": {"line": 4, "column": 14, "end_line": 4, "end_column": 48},
        "message": "100% of batches go through: pageable, memory",
        "help": "pass pin_memory=True",
        "related": [
            {
                "message": "batches go to CUDA here",
                "path": "src/train.py",
                "cell": None,
                "location": {"line": 10, "column": 18, "end_line": 10, "end_column": 35},
            }
        ],
        "fix": {
            "applicability": "safe",
            "message": "add pin_memory=True",
            "edits": [
                {
                    "path": "src/train.py",
                    "cell": None,
                    "location": {"line": 4, "column": 46, "end_line": 4, "end_column": 46},
                    "content": ", pin_memory=True",
                }
            ],
        },
        "fingerprint": "f1",
        "evidence": {"verdict": "confirmed"},
        "measured": None,
        "url": "https://example.org/rules/missing-pin-memory/",
    }
    assert document["findings"][0]["cell"] == 3
    assert document["errors"][1] == {
        "path": "gone.py",
        "cell": None,
        "location": None,
        "message": "cannot be read",
    }
    assert document["summary"] == {
        "files": 4,
        "findings": 3,
        "errors": 2,
        "suppressed": 2,
        "baselined": 0,
        "by_severity": {"error": 1, "warning": 1, "info": 1},
        "by_rule": {"MEM101": 1, "MEM201": 1, "MEM303": 1},
    }


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("version",), 2),
        (("findings", 0, "severity"), "fatal"),
        (("findings", 0, "location", "line"), 0),
        (("findings", 0, "extra"), 1),
        (("errors", 0, "message"), ""),
    ],
)
def test_the_schema_refuses_other_documents(
    samples: Samples, path: tuple[str | int, ...], value: object
) -> None:
    document: Any = json.loads("".join(json_report.render(samples.report(), View())))
    place = document
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(document, schema())


def test_json_and_sarif_survive_any_path(samples: Samples) -> None:
    report = Report(errors=(FileError("b\udcffd é.py", "bad\x1b"),))
    document = json.loads("".join(json_report.render(report, View())).encode("ascii"))
    assert document["errors"][0]["path"] == "b\udcffd é.py"
    log = json.loads("".join(sarif.render(report, View())).encode("ascii"))
    notification = log["runs"][0]["invocations"][0]["toolExecutionNotifications"][0]
    uri = notification["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    assert uri == "b%FFd%20%C3%A9.py"


@pytest.fixture
def run(samples: Samples) -> Any:
    log = json.loads("".join(sarif.render(samples.report(), View(rules=all_rules))))
    assert log["version"] == "2.1.0"
    assert log["$schema"].endswith("sarif-schema-2.1.0.json")
    (run,) = log["runs"]
    return run


def test_sarif_describes_the_tool_and_its_rules(run: Any) -> None:
    driver = run["tool"]["driver"]
    assert driver["name"] == "memlint"
    ids = [rule["id"] for rule in driver["rules"]]
    assert len(ids) == len(set(ids))
    assert {"MEM101", "MEM201", "MEM303", "MEM901"} <= set(ids)
    unused = driver["rules"][ids.index("MEM901")]
    assert unused["name"] == "unused-suppression"
    assert "## What it does" in unused["help"]["markdown"]
    assert unused["help"]["text"]
    assert unused["helpUri"].startswith("https://")
    assert unused["defaultConfiguration"] == {"enabled": False, "level": "warning"}
    assert unused["shortDescription"]["text"].endswith(".")


def test_sarif_results_refer_to_rules_and_places(run: Any) -> None:
    assert run["columnKind"] == "unicodeCodePoints"
    rules = run["tool"]["driver"]["rules"]
    kernel, loader, order = run["results"]
    for result in run["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
        assert result["message"]["text"]
    assert [kernel["level"], loader["level"], order["level"]] == ["error", "warning", "note"]
    (place,) = loader["locations"]
    physical = place["physicalLocation"]
    assert physical["artifactLocation"]["uri"] == "src/train.py"
    assert physical["artifactLocation"]["uriBaseId"] in run["originalUriBaseIds"]
    assert physical["region"] == {
        "startLine": 4,
        "startColumn": 14,
        "endLine": 4,
        "endColumn": 48,
    }
    (related,) = loader["relatedLocations"]
    assert related["id"] == 1
    assert related["message"]["text"] == "batches go to CUDA here"
    assert loader["partialFingerprints"] == {"memlintFingerprint/v1": "f1"}
    (fix,) = loader["fixes"]
    (change,) = fix["artifactChanges"]
    assert change["artifactLocation"] == physical["artifactLocation"]
    assert change["replacements"][0]["insertedContent"] == {"text": ", pin_memory=True"}
    assert loader["properties"]["evidence"] == {"verdict": "confirmed"}


def test_sarif_takes_no_cell_lines_for_lines_of_the_file(run: Any) -> None:
    kernel = run["results"][0]
    assert kernel["message"]["text"].startswith("cell 3, line 1: x is not contiguous")
    assert "region" not in kernel["locations"][0]["physicalLocation"]
    assert kernel["locations"][0]["logicalLocations"][0]["name"] == "cell 3"
    assert "fixes" not in kernel


def test_sarif_tells_what_failed(run: Any) -> None:
    (invocation,) = run["invocations"]
    assert invocation["executionSuccessful"] is False
    first, second = invocation["toolExecutionNotifications"]
    assert first["level"] == "error"
    assert first["locations"][0]["physicalLocation"]["region"]["startLine"] == 2
    assert second["message"]["text"] == "cannot be read"
    clean = json.loads("".join(sarif.render(Report(), View())))
    assert clean["runs"][0]["invocations"][0]["executionSuccessful"] is True
    assert clean["runs"][0]["results"] == []


def test_github_commands_are_escaped(samples: Samples) -> None:
    kernel, loader, order, bad, gone = "".join(github.render(samples.report(), View())).splitlines()
    assert loader == (
        "::warning file=src/train.py,line=4,col=14,endLine=4,endColumn=48,"
        "title=memlint MEM201 missing-pin-memory::"
        "100%25 of batches go through: pageable, memory%0Apass pin_memory=True%0Aconfirmed"
    )
    assert kernel == (
        "::error file=book.ipynb,title=memlint MEM303 noncontiguous-into-kernel::"
        "cell 3, line 1: x is not contiguous%0Acall .contiguous()"
    )
    assert order.startswith("::notice ")
    assert bad == (
        "::error file=bad%2C name.py,line=2,col=5,endLine=2,endColumn=6,title=memlint::"
        "invalid syntax"
    )
    assert gone == "::error file=gone.py,title=memlint::cannot be read"
    (windows,) = github.render(
        Report(errors=(FileError("C:/a.py", "x\r\ny", None, Location(1, 1, 1, 2)),)), View()
    )
    assert windows.startswith("::error file=C%3A/a.py,line=1,")
    assert windows.endswith("::x%0D%0Ay\n")
