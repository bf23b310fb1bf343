"""Configuration files: discovery, inheritance, and errors that say where they are."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from memlint import config
from memlint.config import (
    ConfigError,
    Resolver,
    Settings,
    default_settings,
    find_config,
    load_settings,
    settings_from_file,
)
from memlint.findings import Confidence, Severity
from memlint.linter import rules as rules_module
from memlint.rule import Option, Rule, RuleSet
from memlint.selection import ignored_in, matches, select_rules


class _First(Rule):
    """First."""

    code, name = "TOY101", "first-rule"
    options = {"limit": Option(3, "A limit."), "strict": Option(False, "Or not.")}


class _Second(Rule):
    """Second."""

    code, name = "TOY102", "second-rule"


class _Off(Rule):
    """Off."""

    code, name, default_on = "TOY201", "off-rule", False


for _rule in (_First, _Second):
    _rule.__module__ = "toys.near.module"
_Off.__module__ = "toys.far.module"
RULES = RuleSet({rule.code: rule for rule in (_First, _Second, _Off)})


@pytest.fixture(autouse=True)
def _toy_rules(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(rules_module, "all_rules", lambda: RULES)
    config.forget_files()
    yield
    config.forget_files()


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(textwrap.dedent(text), encoding="utf-8")
    return path


def error_of(path: Path, text: str) -> ConfigError:
    write(path, text)
    config.forget_files()
    with pytest.raises(ConfigError) as caught:
        settings_from_file(path)
    return caught.value


def test_the_nearest_configuration_counts_and_is_not_merged(tmp_path: Path) -> None:
    outer = write(tmp_path / "pyproject.toml", "[tool.memlint]\nignore = ['TOY101']\n")
    write(tmp_path / "inner/pyproject.toml", "[project]\nname = 'memlint-user'\n")
    nearest = write(tmp_path / "inner/deep/memlint.toml", "fail-level = 'error'\n")
    assert find_config(tmp_path / "inner") == outer
    assert find_config(tmp_path / "inner/deep/er") == nearest
    settings = load_settings(tmp_path / "inner/deep")
    assert settings == Settings(root=tmp_path / "inner/deep", fail_level=Severity.ERROR)


def test_memlint_toml_goes_before_pyproject(tmp_path: Path) -> None:
    write(tmp_path / "pyproject.toml", "[tool.memlint]\nfail-level = 'error'\n")
    write(tmp_path / "memlint.toml", "fail-level = 'info'\n")
    assert load_settings(tmp_path).fail_level is Severity.INFO


def test_every_key_is_read(tmp_path: Path) -> None:
    path = write(
        tmp_path / "memlint.toml",
        """\
        select = ["TOY1"]
        extend-select = ["off-rule"]
        ignore = ["TOY102"]
        exclude = ["a"]
        extend-exclude = ["b"]
        force-exclude = true
        respect-gitignore = false
        fail-level = "error"
        min-confidence = "low"
        target-device = "cuda"
        target-torch = "2.4"
        target-numpy = "1.26.4"
        target-python = "3.11"
        max-file-size = 10
        baseline = "base.json"
        cache-dir = "some/where"

        [per-file-ignores]
        "tests/*" = ["near"]

        [rules.TOY101]
        limit = 5
        """,
    )
    assert settings_from_file(path) == Settings(
        root=tmp_path,
        select=("TOY1",),
        extend_select=("off-rule",),
        ignore=("TOY102",),
        per_file_ignores={"tests/*": ("near",)},
        exclude=("a",),
        extend_exclude=("b",),
        force_exclude=True,
        respect_gitignore=False,
        fail_level=Severity.ERROR,
        min_confidence=Confidence.LOW,
        target_device="cuda",
        target_torch="2.4",
        target_numpy="1.26.4",
        target_python="3.11",
        max_file_size=10,
        baseline=tmp_path / "base.json",
        cache_dir=tmp_path / "some/where",
        rule_options={"first-rule": {"limit": 5}},
    )


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("\n\nselct = []\n", 3, "unknown key 'selct' (did you mean 'select'?)"),
        ("plugins = ['os']\n", 1, "unknown key 'plugins'"),
        (
            "# comment\nfail-level = 'eror'\n",
            2,
            "'fail-level' must be one of error, warning, info, not 'eror' (did you mean 'error'?)",
        ),
        ("force-exclude = 1\n", 1, "'force-exclude' must be true or false, not 1"),
        ("select = 'TOY101'\n", 1, "'select' must be a list of strings, not 'TOY101'"),
        ("select = [1]\n", 1, "'select' must hold strings only, not 1"),
        ("max-file-size = true\n", 1, "'max-file-size' must be a whole number above zero"),
        ("max-file-size = -1\n", 1, "'max-file-size' must be a whole number above zero"),
        ("target-torch = 'new'\n", 1, "'target-torch' must be a version such as '2.4'"),
        (
            "select = [\n  'TOY101',\n  'TOY109',\n]\n",
            3,
            "unknown rule selector 'TOY109' (did you mean 'TOY",
        ),
        (
            "ignore = ['frist-rule']\n",
            1,
            "unknown rule selector 'frist-rule' (did you mean 'first-rule'?)",
        ),
        ("[per-file-ignores]\n'a.py' = ['NOPE']\n", 2, "unknown rule selector 'NOPE'"),
        ("per-file-ignores = ['a']\n", 1, "'per-file-ignores' must be a table"),
        ("[rules.second-rul]\n", 1, "unknown rule 'second-rul' (did you mean 'second-rule'?)"),
        (
            "[rules]\nfirst-rule = { strict = true, limi = 3 }\n",
            2,
            "unknown option 'limi' of first-rule (did you mean 'limit'?)",
        ),
        (
            "[rules.second-rule]\n\nx = 1\n",
            3,
            "unknown option 'x' of second-rule (it has no options)",
        ),
        (
            "[rules.first-rule]\nlimit = 1.5\n",
            2,
            "'rules.first-rule.limit' must be a whole number, not 1.5",
        ),
        (
            "[rules.first-rule]\nstrict = 'yes'\n",
            2,
            "'rules.first-rule.strict' must be true or false, not 'yes'",
        ),
        ("a = 1\nb = \n", 2, "invalid TOML: "),
        ("extend = 'missing.toml'\n", 1, "'extend': no such file: "),
        ("extend = 'memlint.toml'\n", 1, "'extend' runs in a circle: "),
        ("extend = '" + "x" * 5000 + "'\n", 1, "'extend': no such file: "),
        ('extend = "a\\u0000b"\n', 1, "'extend' must name a file, not hold NUL characters"),
        ("baseline = '~nobody-here/b'\n", 1, "'baseline' names the home of an unknown user"),
        ("cache-dir = '/somewhere/else'\n", 1, "'cache-dir' must lie below the configuration"),
        ("\ncache-dir = 'a/../..'\n", 2, "'cache-dir' must lie below the configuration"),
        ("cache-dir = '.'\n", 1, "'cache-dir' must lie below the configuration"),
        (f"max-file-size = 1{'0' * 30}\n", 1, "'max-file-size' must not be above"),
    ],
)
def test_an_error_has_its_line_and_the_nearest_key(
    tmp_path: Path, text: str, line: int, message: str
) -> None:
    error = error_of(tmp_path / "memlint.toml", text)
    assert error.line == line
    assert message in error.message
    assert str(error).startswith(f"{tmp_path / 'memlint.toml'}:{line}: ")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("select = " + "[" * 3000 + "]" * 3000, "invalid TOML: nested too deeply"),
        (f"max-file-size = 1{'0' * 5000}", "invalid TOML: "),
    ],
)
def test_what_the_parser_itself_stumbles_over_is_an_error(
    tmp_path: Path, text: str, message: str
) -> None:
    assert message in error_of(tmp_path / "memlint.toml", text).message


def test_a_chain_of_files_has_an_end(tmp_path: Path) -> None:
    for number in range(3000):
        (tmp_path / f"{number}.toml").write_text(f"extend = '{number + 1}.toml'\n")
    error = error_of(tmp_path / "memlint.toml", "extend = '0.toml'\n")
    assert error.line == 1
    assert "more than" in error.message


def test_a_cache_folder_reached_over_a_link_is_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    (tmp_path / "project/link").symlink_to(tmp_path)
    error = error_of(tmp_path / "project/memlint.toml", "cache-dir = 'link/cache'\n")
    assert "'cache-dir' must lie below" in error.message


def test_the_working_directory_governs_no_folder_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "beside").mkdir()
    (tmp_path / "here/memlint.toml").write_text("")
    monkeypatch.chdir(tmp_path / "here")
    assert find_config(Path("../beside")) is None
    assert find_config(Path("../here")) == tmp_path / "here/memlint.toml"


def test_lines_are_those_of_pyproject(tmp_path: Path) -> None:
    text = """\
        [project]
        name = "x"
        select = "not ours"

        [tool.other]
        select = 1

        [tool.memlint]
        ignore = []
        select = 1
        """
    assert error_of(tmp_path / "pyproject.toml", text).line == 10
    text = "[tool]\nmemlint = { ignore = [],\n select = 1 }\n"
    assert error_of(tmp_path / "pyproject.toml", text).line in (2, 3)
    assert error_of(tmp_path / "pyproject.toml", "[tool]\nmemlint = 3\n").line == 2


def test_a_file_that_is_not_utf8(tmp_path: Path) -> None:
    path = tmp_path / "memlint.toml"
    path.write_bytes(b"# fine\nselect = ['\xff']\n")
    with pytest.raises(ConfigError, match="is not valid UTF-8") as caught:
        settings_from_file(path)
    assert caught.value.line == 2


def test_extend_joins_tables_and_replaces_values(tmp_path: Path) -> None:
    write(
        tmp_path / "base/base.toml",
        """\
        select = ["TOY101"]
        extend-exclude = ["old"]
        fail-level = "error"
        baseline = "known.json"

        [per-file-ignores]
        "a" = ["TOY101"]
        "b" = ["TOY101"]
        """,
    )
    path = write(
        tmp_path / "memlint.toml",
        """\
        extend = "base/base.toml"
        select = ["TOY102"]
        extend-exclude = ["new"]

        [per-file-ignores]
        "b" = ["TOY102"]
        """,
    )
    settings = settings_from_file(path)
    assert settings.root == tmp_path
    assert settings.select == ("TOY102",)
    assert settings.extend_exclude == ("old", "new")
    assert settings.fail_level is Severity.ERROR
    assert settings.baseline == tmp_path / "base/known.json"
    assert settings.per_file_ignores == {"a": ("TOY101",), "b": ("TOY102",)}


def test_a_circle_of_files_is_an_error(tmp_path: Path) -> None:
    write(tmp_path / "a.toml", "extend = 'b.toml'\n")
    write(tmp_path / "b.toml", "\nextend = 'a.toml'\n")
    with pytest.raises(ConfigError, match="runs in a circle") as caught:
        settings_from_file(tmp_path / "a.toml")
    assert (caught.value.path, caught.value.line) == (tmp_path / "b.toml", 2)


def test_the_command_line_goes_over_the_file(tmp_path: Path) -> None:
    path = write(
        tmp_path / "memlint.toml",
        """\
        select = ["TOY1"]
        extend-select = ["TOY201"]
        ignore = ["TOY102"]
        extend-exclude = ["a"]
        """,
    )
    added = settings_from_file(path, {"ignore": ("TOY101",), "extend_exclude": ("b",)})
    assert added.ignore == ("TOY102", "TOY101")
    assert added.extend_exclude == ("a", "b")
    assert settings_from_file(path, {"extend_select": ("TOY102",)}).ignore == ()
    chosen = settings_from_file(path, {"select": ("TOY102",)})
    assert (chosen.select, chosen.extend_select, chosen.ignore) == (("TOY102",), (), ())
    with pytest.raises(TypeError, match="not a setting: selekt"):
        default_settings(tmp_path, {"selekt": ()})


def test_a_resolver_reads_each_file_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    own = write(tmp_path / "own/memlint.toml", "fail-level = 'error'\n")
    (tmp_path / "own/deep").mkdir()
    resolver = Resolver()
    assert resolver.for_directory(Path("own")) is resolver.for_directory(Path("own/deep"))
    assert resolver.for_directory(Path("own")).root == tmp_path / "own"
    assert resolver.for_directory(Path()).root == tmp_path
    only = Resolver(config_path=own)
    assert only.for_directory(Path()).fail_level is Severity.ERROR
    isolated = Resolver(isolated=True)
    assert isolated.for_directory(Path("own")).fail_level is Severity.WARNING


@pytest.mark.parametrize(
    ("given", "codes"),
    [
        ({}, "101 102"),
        ({"select": ("ALL",)}, "101 102 201"),
        ({"select": ("toy102",)}, "102"),
        ({"select": ("near",)}, "101 102"),
        ({"select": ("far",)}, "201"),
        ({"select": ("TOY",)}, "101 102 201"),
        ({"extend_select": ("off-rule",)}, "101 102 201"),
        ({"ignore": ("TOY1",)}, ""),
        ({"ignore": ("first-rule",)}, "102"),
        ({"ignore": ("ALL",)}, ""),
        ({"select": ("TOY101",), "ignore": ("TOY1",)}, "101"),
        ({"select": ("TOY1",), "ignore": ("TOY101",)}, "102"),
        ({"select": ("TOY101",), "ignore": ("first-rule",)}, ""),
        ({"select": ("near",), "ignore": ("TOY1",)}, ""),
    ],
)
def test_the_more_exact_selector_wins(given: dict[str, tuple[str, ...]], codes: str) -> None:
    selected = select_rules(Settings(root=Path(), **given), RULES)
    assert " ".join(rule.code.removeprefix("TOY") for rule in selected) == codes


@pytest.mark.parametrize(("device", "count"), [("auto", 2), ("cuda", 2), ("cpu", 1)])
def test_rules_about_a_device_that_is_ruled_out_do_not_run(
    device: str, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_Second, "needs_device", "cuda")
    settings = Settings(root=Path(), select=("near",), target_device=device)
    assert len(select_rules(settings, RULES)) == count


def test_a_selector_that_matches_nothing() -> None:
    assert matches("TOY10", _First)
    assert not matches("TO", _First)
    with pytest.raises(ConfigError, match="unknown rule selector 'TO'"):
        select_rules(Settings(root=Path(), select=("TO",)), RULES)


def test_per_file_ignores_are_written_like_gitignore() -> None:
    settings = Settings(
        root=Path(),
        per_file_ignores={"tests/": ("near",), "/conf*.py": ("first-rule",), "*.ipynb": ("ALL",)},
    )
    rules = tuple(RULES.rules.values())
    assert ignored_in(settings, "pkg/tests/a.py", rules) == {"TOY101", "TOY102"}
    assert ignored_in(settings, "conftest.py", rules) == {"TOY101"}
    assert ignored_in(settings, "pkg/conftest.py", rules) == set()
    assert ignored_in(settings, "a/b.ipynb", rules) == {"TOY101", "TOY102", "TOY201"}
