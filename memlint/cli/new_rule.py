"""``memlint new-rule``."""

from __future__ import annotations

import re
from pathlib import Path
from string import Template

import click

from memlint.cli.packs import load
from memlint.cli.status import Failed, Status

_FAMILY = re.compile(r"[a-z][a-z0-9_]*")
_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_CODE = re.compile(r"[A-Z]+[0-9]{3}")

# A whole rule that works and claims something nobody would dispute, of programs that nobody
# writes: its tests pass from the start, and each part can be replaced while they keep passing.
_RULE = Template('''\
"""$code: $name."""

from __future__ import annotations

from collections.abc import Iterator

from memlint.analysis.events import LoaderBuilt
from memlint.analysis.values import Const
from memlint.findings import Applicability, Severity
from memlint.rule import Draft, Needs, Rule


class $class_name(Rule):
    """A DataLoader yields a million samples at a time.

    ## What it does

    Finds loaders that are built with `batch_size=1_000_000`.

    ## Why it is slow

    Say what the memory system has to do, and name the measurement that shows it.

    ## When it is silent

    - where the batch size is another one, or is not known.

    ## Example

    ```python
    from torch.utils.data import DataLoader


    def loader_of(dataset):
        return DataLoader(dataset, batch_size=1_000_000)
    ```

    ## Use instead

    ```python
    from torch.utils.data import DataLoader


    def loader_of(dataset):
        return DataLoader(dataset, batch_size=64)
    ```

    ## Fix safety

    There is no automatic fix: say why, or what the fix may change.

    ## How to confirm

    Say what to measure, and where; a method `bench` can do it (docs/bench.md).

    ## References

    - Name what the claims above rest on.
    """

    code = "$code"
    name = "$name"
    severity = Severity.INFO
    default_on = False
    applicability = Applicability.NONE
    needs = Needs({"DataLoader"}, {"batch_size"})

    def check(self, loader: LoaderBuilt) -> Iterator[Draft]:
        """Called for every loader of a program, once all is known of it."""
        if loader.argument("batch_size") == Const(1_000_000):
            yield self.finding(
                loader.node,
                "this loader yields a million samples at a time",
                "load fewer samples at a time",
            )
''')

_BAD = Template('''\
"""Bad: a million samples at a time."""

from torch.utils.data import DataLoader


def loader_of(dataset):
    return DataLoader(dataset, batch_size=1_000_000)  # expect: $name
''')

_GOOD = '''\
"""Good: the batch size is not known."""

from torch.utils.data import DataLoader


def loader_of(dataset, batch_size):
    return DataLoader(dataset, batch_size=batch_size)
'''


@click.command("new-rule")
@click.argument("family")
@click.argument("name")
@click.argument("code")
@click.option(
    "--pack",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    default="rules/memlint_rules",
    show_default=True,
    help="The folder of the rule pack.",
)
@click.option(
    "--fixtures",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    default="fixtures",
    show_default=True,
    help="The folder of the fixture programs.",
)
def new_rule(family: str, name: str, code: str, pack: Path, fixtures: Path) -> int:
    """Write the files of a new rule: its class and two fixture programs.

    FAMILY is a folder of the rule pack (locality), NAME is in kebab case
    (column-order-loop), CODE is not taken yet and begins like those of the family
    (MEM199).
    """
    _check_spelling(family, name, code)
    _check_free(name, code)
    _check_family(family, code)
    words = {"code": code, "name": name, "class_name": name.title().replace("-", "")}
    programs = fixtures / family / name
    files = {
        pack / family / f"{name.replace('-', '_')}.py": _RULE.substitute(words),
        programs / "bad_1.py": _BAD.substitute(words),
        programs / "good_1.py": _GOOD,
    }
    package = pack / family / "__init__.py"
    if not package.exists():
        files[package] = ""
    for path in files:
        if path.exists():
            raise Failed(f"{path} exists already")
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        click.echo(path)
    return Status.CLEAN


def _check_spelling(family: str, name: str, code: str) -> None:
    if not _FAMILY.fullmatch(family):
        raise click.UsageError(f"FAMILY must be the name of a package, not {family!r}")
    if not _NAME.fullmatch(name):
        raise click.UsageError(f"NAME must be in kebab case, not {name!r}")
    if not _CODE.fullmatch(code):
        raise click.UsageError(f"CODE must be letters and three digits, not {code!r}")


def _check_free(name: str, code: str) -> None:
    rules = load()
    for selector in (code, name):
        if (rule := rules.by_name(selector)) is not None:
            raise click.UsageError(f"{selector} is taken: {rule.code} {rule.name}")


def _check_family(family: str, code: str) -> None:
    """Codes of one pack begin alike where the rules are of one family, and only there."""
    for rule in load().rules.values():
        start, taken = rule.code[:-2], rule.family()
        if start[:-1] != code[:-3]:
            continue
        if taken == family and not code.startswith(start):
            raise click.UsageError(f"codes of {family} begin with {start}, {code} does not")
        if taken != family and code.startswith(start):
            raise click.UsageError(f"codes that begin with {start} are of {taken}, not of {family}")
