"""The other modules of a project: where an import leads, and what a name there stands for.

Files are looked into as text first: a module is only parsed where what is imported from it
turns out to matter.  What was looked into is noted, since results depend on it.
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import field
from functools import cache, partial
from hashlib import blake2b
from typing import NamedTuple

from memlint.late_dataclass import dataclass
from memlint.late_pattern import late_pattern
from memlint.source.model import Source, with_newlines
from memlint.source.read import SourceError, decode_source

_FROM = late_pattern(
    r"^[ \t]*from[ \t]+([.\w]+)[ \t]+import[ \t]*(\([^)]*\)|(?:[^\n\\#]|\\\r?\n)+)", re.MULTILINE
)
_IMPORT = late_pattern(r"^[ \t]*import[ \t]+((?:[^\n\\#]|\\\r?\n)+)", re.MULTILINE)
_ITEM = late_pattern(r"([\w.]+|\*)(?:\s+as\s+(\w+))?")
_COMMENT = late_pattern(r"#[^\n]*")
_TOP_LEVEL = late_pattern(
    r"^(?:(?:async[ \t]+)?def[ \t]+(\w+)|class[ \t]+(\w+)|(\w+)[ \t]*(?::[^=\n]+)?=(?!=))",
    re.MULTILINE,
)
_NEXT_STATEMENT = late_pattern(r"^[^\s#)\]}]", re.MULTILINE)
_NAME = late_pattern(r"\w+")
_WORD = late_pattern(r"(?<![.\w])[A-Za-z_]\w*")
_MOST_BLOCKS = 20
_MOST_HOPS = 4
# What follows a name that is called, or that something in is.
_USE = late_pattern(r"(?:\.\w+)*\(")
# Packages that are known by name: what they hold need not be read, also in their own projects.
LIBRARIES = frozenset(
    {"torch", "numpy", "cupy", "cupyx", "numba", "triton", "accelerate", "lightning", "joblib",
     "pytorch_lightning", "torchvision", "tqdm", "rich", "psutil", "ignite"}
)  # fmt: skip
_KEPT_TEXT = 24_000_000
_MOST_STARS = 4
_KEPT_PROGRAMS = 24
_MOST_NAMES = 40


class Origin(NamedTuple):
    """A top-level name of a module of the project, by the module's path."""

    path: str
    name: str


class Looked(NamedTuple):
    """A file that was looked into, and what told its state then."""

    path: str
    size: int
    mtime_ns: int
    digest: str


class Bound(NamedTuple):
    """What an import statement binds: the local name, the name it stands for (as the
    statement spells the module, dots of relative imports included), the module's spelling,
    the name in it (empty for the module itself, ``*`` for all)."""

    local: str
    full: str
    module: str
    name: str


@dataclass(frozen=True, slots=True)
class Followed:
    """What a program imports from its project and is worth following.

    ``names`` maps the full name of each to where it is defined; ``texts`` the local name to
    the text of all that it reaches, ``origins`` is all that; ``looked`` are the files that were
    looked into.
    """

    names: Mapping[str, Origin] = field(default_factory=dict)
    origins: frozenset[Origin] = frozenset()
    texts: Mapping[str, str] = field(default_factory=dict)
    looked: tuple[Looked, ...] = ()


NOTHING = Followed()


class Reached(NamedTuple):
    """What a name of the project stands for, with what it names in its turn."""

    text: str
    origins: frozenset[Origin]
    looked: tuple[Looked, ...]


class Module:
    """A module as text: the blocks of its top-level names, and its imports."""

    __slots__ = ("_imports", "_names", "_words", "looked", "text")

    def __init__(self, text: str, looked: Looked) -> None:
        self.text = text
        self.looked = looked
        self._names: dict[str, list[int]] | None = None
        self._imports: tuple[Bound, ...] | None = None
        self._words: dict[str, frozenset[str]] = {}

    def words_of(self, name: str) -> frozenset[str]:
        """The names in the block of a name."""
        if name not in self._words:
            self._words[name] = frozenset(_WORD.findall(self.block(name)))
        return self._words[name]

    @property
    def names(self) -> Mapping[str, list[int]]:
        """The top-level names, and where their definitions and assignments begin."""
        if self._names is None:
            self._names = {}
            for found in _TOP_LEVEL.finditer(self.text):
                name = found[1] or found[2] or found[3]
                self._names.setdefault(name, []).append(found.start())
        return self._names

    def block(self, name: str) -> str:
        """The text of what defines or assigns a top-level name."""
        parts = []
        for start in self.names.get(name, ()):
            end = _NEXT_STATEMENT.search(self.text, start + 1)
            parts.append(self._above(start) + self.text[start : end.start() if end else None])
        return "".join(parts)

    def needed_by(self, names: Iterable[str]) -> frozenset[str]:
        """``names`` and the top-level names that their definitions name in their turn."""
        found: set[str] = set()
        waiting = list(names)
        while waiting:
            name = waiting.pop()
            if name not in found:
                found.add(name)
                waiting += self.words_of(name) & self.names.keys()
        return frozenset(found)

    def without_others(self, names: Container[str]) -> str:
        """The text with empty lines for the definitions and assignments of other names."""
        parts: list[str] = []
        done = 0
        starts = sorted((start, name) for name, some in self.names.items() for start in some)
        for start, name in starts:
            if name in names or start < done:
                continue
            end = _NEXT_STATEMENT.search(self.text, start + 1)
            first = max(start - len(self._above(start)), done)
            last = end.start() if end else len(self.text)
            parts += self.text[done:first], "\n" * self.text.count("\n", first, last)
            done = last
        return "".join((*parts, self.text[done:]))

    def _above(self, start: int) -> str:
        """The decorators right above a definition."""
        lines: list[str] = []
        while start > 0:
            first = self.text.rfind("\n", 0, start - 1) + 1
            line = self.text[first:start]
            if not line.startswith("@"):
                break
            lines.insert(0, line)
            start = first
        return "".join(lines)

    @property
    def imports(self) -> tuple[Bound, ...]:
        """What its import statements bind."""
        if self._imports is None:
            self._imports = tuple(imports_of(self.text))
        return self._imports


def imports_of(text: str) -> Iterator[Bound]:
    """What the import statements of a program bind, by its text."""
    for found in _FROM.finditer(text):
        module = found[1]
        for item in _ITEM.finditer(_COMMENT.sub("", found[2])):
            name = item[1]
            full = f"{module}.{name}" if module.strip(".") else module + name
            yield Bound(item[2] or name, full, module, name)
    for found in _IMPORT.finditer(text):
        for item in _ITEM.finditer(found[1]):
            yield Bound(item[2] or item[1], item[1], item[1], "")


class Project:
    """The files around a program, as its imports see them."""

    def __init__(self, root: str, largest: int) -> None:
        self._root = root
        self._largest = largest
        self._modules: dict[str, Module | None] = {}
        self._held = 0
        self._found: dict[Origin, tuple[Origin | None, tuple[Looked, ...]]] = {}
        self._programs: dict[tuple[str, frozenset[str]], tuple[Source, ast.Module] | None] = {}
        self._is_file: dict[str, bool] = {}
        self._resolved: dict[tuple[str, str], str | None] = {}
        self._reached: dict[Origin, Reached] = {}

    # Files

    def module(self, path: str) -> Module | None:
        """A module as text; ``None`` where it cannot be read."""
        if path not in self._modules:
            module = self._modules[path] = self._read(path)
            self._held += len(module.text) if module is not None else 0
            while self._held > _KEPT_TEXT and len(self._modules) > 1:
                oldest = self._modules.pop(next(iter(self._modules)))
                self._held -= len(oldest.text) if oldest is not None else 0
            return module
        return self._modules[path]

    def _read(self, path: str) -> Module | None:
        try:
            with open(path, "rb") as file:
                status = os.fstat(file.fileno())
                data = file.read(self._largest + 1)
            if len(data) > self._largest:
                return None
            text = with_newlines(decode_source(data, path).text)
        except (OSError, SourceError):
            return None
        digest = blake2b(data, digest_size=16).hexdigest()
        return Module(text, Looked(path, status.st_size, status.st_mtime_ns, digest))

    def program(self, path: str, names: frozenset[str]) -> tuple[Source, ast.Module] | None:
        """A module as a program, as far as some of its names need it, each of its nodes marked
        with its source."""
        module = self.module(path)
        if module is None:
            return None
        key = (path, module.needed_by(names))
        if key not in self._programs:
            if len(self._programs) >= _KEPT_PROGRAMS:
                self._programs.clear()
            self._programs[key] = _parsed(path, module, key[1])
        return self._programs[key]

    def resolve(self, importer: str, module: str) -> str | None:
        """The file that a module's spelling in ``importer`` stands for, if the project has it."""
        key = (os.path.dirname(importer), module)
        if key not in self._resolved:
            self._resolved[key] = self._resolve(*key)
        return self._resolved[key]

    def _resolve(self, folder: str, module: str) -> str | None:
        dots = len(module) - len(module.lstrip("."))
        parts = [part for part in module[dots:].split(".") if part]
        if dots:
            for _ in range(dots - 1):
                folder = os.path.join(folder, os.pardir)
            return self._in_folder(os.path.normpath(folder) if folder else folder, parts)
        for base in self._bases(folder):
            found = self._in_folder(base, parts)
            if found is not None:
                return found
        return None

    def _in_folder(self, folder: str, parts: list[str]) -> str | None:
        base = os.path.join(folder, *parts) if parts else folder
        if parts and self._exists(base + ".py"):
            return base + ".py"
        init = os.path.join(base, "__init__.py")
        return init if self._exists(init) else None

    def _bases(self, folder: str) -> Iterator[str]:
        """The folders that absolute imports may start from: the script's own, the one that
        its outermost package lies in, the project's and its ``src``."""
        yield folder
        top = folder
        while self._exists(os.path.join(top, "__init__.py")):
            above = os.path.normpath(os.path.join(top, os.pardir))
            if above == top:
                break
            top = above
        if top != folder:
            yield "" if top == "." else top
        for base in (self._root, os.path.join(self._root, "src")):
            shown = os.path.relpath(base) if not os.path.isabs(folder) else base
            yield "" if shown == "." else shown

    def _exists(self, path: str) -> bool:
        known = self._is_file.get(path)
        if known is None:
            known = self._is_file[path] = os.path.isfile(path)
        return known

    # Names

    def find(self, path: str, name: str, looked: dict[str, Looked]) -> Origin | None:
        """Where a name of a module is defined, through re-exports; the module itself has no
        name, and a submodule may be imported as a name of its package."""
        here = Origin(path, name)
        if here not in self._found:
            chain: list[Looked] = []
            self._found[here] = self._find(here, chain, frozenset()), tuple(chain)
        found, through = self._found[here]
        looked.update((one.path, one) for one in through)
        return found

    def _find(self, here: Origin, chain: list[Looked], seen: frozenset[Origin]) -> Origin | None:
        path, name = here
        module = self.module(path)
        if module is None or here in seen or len(seen) > _MOST_HOPS:
            return None
        chain.append(module.looked)
        if name in module.names:
            return here
        seen |= {here}
        named = [bound for bound in module.imports if bound.local == name]
        stars = [bound for bound in module.imports if bound.name == "*"]
        for bound in (*named, *stars[:_MOST_STARS]):
            target = self.resolve(path, bound.module)
            if target is None:
                continue
            inner = name if bound.name == "*" else bound.name
            known = len(chain)
            found = self._find(Origin(target, inner), chain, seen) if inner else Origin(target, "")
            if found is not None:
                return found
            del chain[known:]
        if os.path.basename(path) == "__init__.py":
            submodule = self._in_folder(os.path.dirname(path), [name])
            if submodule is not None:
                return Origin(submodule, "")
        return None

    def reached(self, origin: Origin, looked: dict[str, Looked]) -> Reached:
        """The text of a definition and of what it names in its module, and what that imports."""
        known = self._reached.get(origin)
        if known is None:
            files: dict[str, Looked] = {}
            texts, origins = self._blocks_of(origin, files)
            known = self._reached[origin] = Reached(
                "\n".join(texts), origins, tuple(files.values())
            )
        looked.update((one.path, one) for one in known.looked)
        return known

    def _blocks_of(
        self, origin: Origin, looked: dict[str, Looked]
    ) -> tuple[list[str], frozenset[Origin]]:
        texts: list[str] = []
        seen: set[Origin] = set()
        waiting = [origin]
        while waiting and len(seen) < _MOST_BLOCKS:
            one = waiting.pop(0)
            if one in seen:
                continue
            seen.add(one)
            module = self.module(one.path)
            if module is None:
                continue
            looked[one.path] = module.looked
            texts.append(module.block(one.name))
            words = module.words_of(one.name)
            waiting += [Origin(one.path, word) for word in sorted(words & module.names.keys())]
            for bound in module.imports:
                if bound.local in words and bound.name not in ("", "*"):
                    found = None
                    if one.path == origin.path:
                        target = self.resolve(one.path, bound.module)
                        found = self.find(target, bound.name, looked) if target else None
                    if found is not None and found.name:
                        waiting.append(found)
                    elif found is None:
                        texts.append(f"from {bound.module} import {bound.name} as {bound.local}")
        return texts, frozenset(seen)

    def imported(self, path: str, text: str, looked: dict[str, Looked]) -> Iterator[_Import]:
        """The names of the project that a program imports, and those of modules it imports."""
        is_made = cache(partial(_is_made, text=text))
        for bound in imports_of(text):
            if bound.module.partition(".")[0] in LIBRARIES:
                continue
            target = self.resolve(path, bound.module)
            if target is None or not is_made(bound.local):
                continue
            if bound.name == "*":
                yield from self._all_of(bound, target, text, looked)
                continue
            found = self.find(target, bound.name, looked) if bound.name else Origin(target, "")
            if found is None:
                continue
            if found.name:
                yield _Import(bound.local, bound.full, found)
            else:
                yield from self._parts_of(bound, found.path, text, looked)

    def _all_of(
        self, bound: Bound, path: str, text: str, looked: dict[str, Looked]
    ) -> Iterator[_Import]:
        module = self.module(path)
        if module is None:
            return
        words = set(_WORD.findall(text))
        names = [n for n in (*module.names, *(b.local for b in module.imports)) if n in words]
        for name in names[:_MOST_NAMES]:
            found = self.find(path, name, looked)
            if found is not None and found.name:
                yield _Import(name, f"{bound.module}.{name}", found)

    def _parts_of(
        self, bound: Bound, path: str, text: str, looked: dict[str, Looked]
    ) -> Iterator[_Import]:
        """``data.make_loader`` and its like, for each name that is used of a module."""
        if f"{bound.local}." not in text:
            return
        for name in sorted(_used_of(bound.local, text))[:_MOST_NAMES]:
            found = self.find(path, name, looked)
            if found is not None and found.name:
                yield _Import(bound.local.partition(".")[0], f"{bound.full}.{name}", found)


def _parsed(path: str, module: Module, names: frozenset[str]) -> tuple[Source, ast.Module] | None:
    tree = _tree(module.without_others(names)) or _tree(module.text)
    if tree is None:
        return None
    source = Source(path, module.text)
    mark_foreign(tree, source)
    return source, tree


def _tree(text: str) -> ast.Module | None:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


class _Import(NamedTuple):
    local: str
    full: str
    origin: Origin


def _is_made(local: str, text: str) -> bool:
    """Whether a program calls what it imports, or something in it, or derives from it; in
    annotations and tests of types it is only named."""
    if local == "*":
        return True
    at = text.find(local)
    while at >= 0:
        after = _USE.match(text, at + len(local))
        if after is not None and (at == 0 or not (text[at - 1].isalnum() or text[at - 1] in "._")):
            return True
        line = text.rfind("\n", 0, at) + 1
        if text[line:at].lstrip().startswith("class "):
            return True
        at = text.find(local, at + 1)
    return False


def _used_of(local: str, text: str) -> set[str]:
    """The names behind a dot that a program uses of what it imports as ``local``."""
    used: set[str] = set()
    at = text.find(local + ".")
    while at >= 0:
        end = at + len(local)
        if at == 0 or not (text[at - 1].isalnum() or text[at - 1] in "._"):
            name = _NAME.match(text, end + 1)
            if name is not None:
                used.add(name[0])
        at = text.find(local + ".", end)
    return used


def mark_foreign(tree: ast.Module, source: Source) -> None:
    """Note on every node of a module which source it is of."""
    for node in ast.walk(tree):
        node._source = source  # type: ignore[attr-defined]


def source_of(node: ast.AST, own: Source) -> Source:
    """The source that a node is of: ``own``, or that of a module which was followed."""
    found = getattr(node, "_source", own)
    assert isinstance(found, Source)
    return found


def is_foreign(node: ast.AST) -> bool:
    """Whether a node is of a module that was followed, not of the program itself."""
    return hasattr(node, "_source")
