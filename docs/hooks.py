"""Writes what the code knows into the site: rule pages, tables of rules and settings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from memlint.config import Settings
from memlint.config_keys import KEYS
from memlint.linter.rules import all_rules
from memlint.report.rule_page import default_word, fix_word, page
from memlint.rule import Rule
from memlint.source.excludes import DEFAULT_EXCLUDES


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add a page per rule, and their index."""
    rules = list(all_rules().rules.values())
    files.append(File.generated(config, "rules/index.md", content=_index(rules)))
    for rule in rules:
        files.append(File.generated(config, f"rules/{rule.name}.md", content=page(rule)))
    _list_in_navigation(config, rules)
    return files


def _list_in_navigation(config: MkDocsConfig, rules: list[type[Rule]]) -> None:
    nav: list[dict[str, Any]] = config.nav or []
    for entry in nav:
        if entry.get("Rules") == "rules/index.md":
            pages = [{f"{r.code} {r.name}": f"rules/{r.name}.md"} for r in rules]
            entry["Rules"] = [{"All rules": "rules/index.md"}, *pages]


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Put the table of settings where a page asks for it."""
    return markdown.replace("<!-- settings -->", "\n".join(_settings()))


def _index(rules: list[type[Rule]]) -> str:
    return "\n".join(_index_rows(rules)) + "\n"


def _index_rows(rules: list[type[Rule]]) -> Iterator[str]:
    yield "# Rules"
    yield ""
    yield "Codes and names are accepted alike, on the command line, in the configuration"
    yield "and in suppression comments. *Error* means wrong results or a crash, *warning* a"
    yield "cost that is nearly always real, *info* one that depends on sizes or hardware."
    yield "A *safe* fix keeps what the program computes, an *unsafe* one may change it, one"
    yield "that is *shown* is a suggestion for you to weigh."
    by_family = sorted(rules, key=lambda rule: rule.code[:-2])
    for _, group in groupby(by_family, key=lambda rule: rule.code[:-2]):
        members = list(group)
        yield ""
        yield f"## {members[0].family()}"
        yield ""
        yield "| code | name | what it finds | severity | default | fix |"
        yield "|---|---|---|---|---|---|"
        for rule in members:
            yield (
                f"| {rule.code} | [{rule.name}]({rule.name}.md) | {rule.summary()} "
                f"| {rule.severity.value} | {default_word(rule)} | {fix_word(rule)} |"
            )


_DEFAULTS: Mapping[str, str] = {
    "select": "the rules that are on by default",
    "exclude": "the list below",
    "baseline": "none",
    "cache-dir": "`.memlint_cache` beside the configuration file, or where memlint is run",
    "per-file-ignores": "none",
}


def _settings() -> Iterator[str]:
    yield "| key | meaning | default |"
    yield "|---|---|---|"
    defaults = {name: field.default for name, field in Settings.__dataclass_fields__.items()}
    for key, entry in KEYS.items():
        default = _DEFAULTS.get(key) or _shown(defaults[entry.setting])
        yield f"| `{key}` | {entry.help} | {default} |"
    yield ""
    yield f"Excluded by default: {', '.join(f'`{name}`' for name in DEFAULT_EXCLUDES)}."


def _shown(value: Any) -> str:
    value = getattr(value, "value", value)
    if value is None:
        return "not set"
    if isinstance(value, tuple):
        return "`[]`"
    return f"`{str(value).lower()}`"
