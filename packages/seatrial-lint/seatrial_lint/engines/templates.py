"""Renders the Jinja templates of `serving_templates/` in a sandbox: an undefined name is an error, never nothing.

A project's folder overrides them file by file: `lmi/serving.properties.j2` there is read in place of ours.

Who may write templates may not run code. Three walls, each for itself: statements and expressions are those of a list,
checked before anything runs; attributes, methods, filters and tests are those of a list, and there are no globals; all
work is counted in steps and characters. Nothing depends on time, so a template ends alike on every machine.
"""

from __future__ import annotations

import errno
import json
import os
import re
from collections.abc import Callable, ItemsView, Iterator, KeysView, Mapping, ValuesView
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from pathlib import Path
from traceback import walk_tb
from types import BuiltinMethodType
from typing import TYPE_CHECKING, Any, Final

from jinja2 import BaseLoader, StrictUndefined, Template, TemplateNotFound, TemplateSyntaxError, Undefined, nodes
from jinja2.exceptions import SecurityError
from jinja2.filters import do_default, do_float, do_int, do_items, do_lower, do_trim, do_upper
from jinja2.parser import Parser
from jinja2.runtime import LoopContext, Macro
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.tests import TESTS as JINJA_TESTS

from seatrial_base.errors import RenderError
from seatrial_base.files import follow_links, read_text
from seatrial_base.findings import Finding, Place
from seatrial_lint.engines.properties import escape_key, escape_property, read_env_lines

if TYPE_CHECKING:
    from collections.abc import Iterable, MutableMapping, Sequence
    from types import CodeType

    from jinja2 import Environment
    from jinja2.runtime import Context


MOST_WORK: Final = 1_000_000
"""Steps and characters of one rendering."""
MOST_SOURCE: Final = 32 * 1024
"""Characters of a template and of what it includes."""
MOST_FILES: Final = 20
"""A template with what it includes."""
MOST_NESTED: Final = 20
"""Levels of statements and expressions, of brackets, of lists in lists, of macros that call others."""

STATEMENTS: Final[Mapping[type[nodes.Node], str]] = {
    nodes.For: "for",
    nodes.If: "if",
    nodes.With: "with",
    nodes.Assign: "set",
    nodes.AssignBlock: "set",
    nodes.Macro: "macro",
    nodes.Include: "include",
    nodes.Import: "import",
    nodes.FromImport: "from",
}
TESTS: Final = (
    *("!=", "==", "boolean", "defined", "eq", "equalto", "false", "float", "in", "integer", "mapping", "ne", "none"),
    *("number", "sequence", "string", "true", "undefined"),
)
METHODS: Final[Mapping[type, tuple[str, ...]]] = {
    str: ("endswith", "lower", "removeprefix", "removesuffix", "split", "startswith", "strip", "upper"),
    Mapping: ("get", "items", "keys", "values"),
}
LOOP: Final = ("first", "index", "index0", "last", "length")

_EXPRESSIONS = (
    *(nodes.Template, nodes.Output, nodes.TemplateData, nodes.Name, nodes.Const, nodes.List, nodes.Tuple, nodes.Dict),
    *(nodes.Pair, nodes.Keyword, nodes.Getattr, nodes.Getitem, nodes.Call, nodes.Filter, nodes.Test, nodes.Compare),
    *(nodes.Operand, nodes.And, nodes.Or, nodes.Not, nodes.CondExpr, nodes.Concat, nodes.Neg, nodes.Scope),
)
_USES = (nodes.Include, nodes.Import, nodes.FromImport)
_TOO_LARGE = 2**63
_RESERVED = frozenset({"caller", "kwargs", "self", "varargs"})
_WORDS: Mapping[type[nodes.Node], str] = {
    nodes.Add: "+", nodes.Sub: "-", nodes.Mul: "*", nodes.Div: "/", nodes.FloorDiv: "//", nodes.Mod: "%",
    nodes.Pow: "**", nodes.Pos: "+", nodes.Slice: "[from:to]", nodes.CallBlock: "call", nodes.FilterBlock: "filter",
    nodes.NSRef: "attribute that is set", nodes.ScopedEvalContextModifier: "autoescape",
}  # fmt: skip
# Filters that no template can name, for their blanks.
_VALUE, _STEPS = "the value", "the steps"
_COUNTED: Mapping[type[nodes.Node], tuple[str, ...]] = {
    nodes.Output: ("nodes",), nodes.For: ("iter",), nodes.Concat: ("nodes",), nodes.List: ("items",),
    nodes.Tuple: ("items",), nodes.Pair: ("key", "value"), nodes.Compare: ("expr",), nodes.Operand: ("expr",),
}  # fmt: skip
"""Where a value is written, compared, walked through or kept in another: its size counts there."""


class TemplateLimitError(SecurityError):
    """A template does more, or nests deeper, than templates may."""


@dataclass(frozen=True, slots=True)
class TemplateUse:
    """A file that a template includes or imports.

    `name`: its path below the folder of templates.
    """

    name: str
    line: int
    is_optional: bool


@dataclass(frozen=True, slots=True)
class CheckedTemplate:
    """A file of templates.

    Attributes:
        shown: Its name in messages.
        code: What renders it; `None` where there are problems.
        uses: What it includes and imports.
        problems: All that it may not say.
    """

    shown: str
    size: int
    code: CodeType | None = None
    uses: tuple[TemplateUse, ...] = ()
    problems: tuple[Finding, ...] = ()


class TemplateSandbox(ImmutableSandboxedEnvironment):
    """Renders one template, once: the work that is left is its own."""

    def __init__(self, codes: Mapping[str, CodeType | None]) -> None:
        super().__init__(
            loader=_CheckedTemplates(codes),
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            keep_trailing_newline=True,
            # Else constant parts run while they are compiled, and nothing counts them.
            optimized=False,
        )
        self._left, self._depth = MOST_WORK, 0
        self.globals.clear()
        own: dict[str, Callable[..., object]] = {"join": self._join, "map": self._map, "replace": self._replace}
        self.filters = {name: self._counted(own.get(name) or _PLAIN[name]) for name in FILTERS}
        self.filters |= {_VALUE: self._value, _STEPS: self._spend}
        tests: Mapping[str, Any] = JINJA_TESTS
        self.tests = {name: self._counted(tests[name]) for name in TESTS}

    def is_safe_attribute(self, obj: object, attr: str, value: object) -> bool:
        """Return whether a template may read an attribute: only those of the lists."""
        if isinstance(obj, WrittenOption):
            return attr in WrittenOption.__slots__
        if isinstance(obj, LoopContext):
            return attr in LOOP
        is_of_list = any(isinstance(obj, kind) and attr in names for kind, names in METHODS.items())
        # Of a file that is imported.
        return is_of_list or isinstance(value, Macro)

    def unsafe_undefined(self, obj: object, attribute: str) -> Undefined:
        """Return what says, where it is used, that an attribute is not of the lists."""
        names = next((names for kind, names in METHODS.items() if isinstance(obj, kind)), ())
        known = f"; those that can: {', '.join(names)}" if names else ""
        message = f"{attribute} of a {type(obj).__name__} can't be used{known}"
        return self.undefined(message, obj, attribute, exc=SecurityError)

    def wrap_str_format(self, value: object) -> None:
        """Give no `format` to templates: Jinja would, before it asks `is_safe_attribute`."""

    def call(self, context: Context, function: Any, /, *args: object, **kwargs: object) -> object:  # noqa: ANN401
        """Call a macro, or a method of the list."""
        if isinstance(function, Macro):
            self._depth += 1
            if self._depth > MOST_NESTED:
                message = f"more than {MOST_NESTED} macros call each other"
                raise TemplateLimitError(message)
            made: object = super().call(context, function, *args, **kwargs)
            self._depth -= 1
            return made
        if isinstance(function, Undefined):
            # It says what is undefined.
            return function()
        owner = function.__self__ if isinstance(function, BuiltinMethodType) else None
        if owner is None or not self.is_safe_attribute(owner, function.__name__, function):
            message = f"{type(function).__name__} can't be called: templates call macros and methods of the list"
            raise SecurityError(message)
        if isinstance(owner, str):
            self._spend(len(owner))
        return super().call(context, self._counted(function), *args, **kwargs)

    def _spend(self, work: int) -> str:
        self._left -= work
        if self._left < 0:
            message = f"it does more than {MOST_WORK:,} steps and characters"
            raise TemplateLimitError(message)
        return ""

    def _value(self, value: Any) -> Any:  # noqa: ANN401 (whatever a template has)
        """Count a value by its size and return it; refuse what is no value, such as a method."""
        # Most are.
        if isinstance(value, str):
            self._spend(1 + len(value))
            return value
        waiting = [(value, 1)]
        while waiting:
            one, depth = waiting.pop()
            self._spend(1)
            members: Iterable[object] = ()
            if isinstance(one, str):
                self._spend(len(one))
            elif isinstance(one, WrittenOption):
                members = (one.name, one.value, one.option)
            elif isinstance(one, Mapping):
                members = (*one.keys(), *one.values())
            elif isinstance(one, (list, tuple, KeysView, ValuesView, ItemsView)):
                members = one
            elif isinstance(one, Undefined) and depth > 1:
                # Raises what it is: within a list, nothing else would say it.
                members = str(one)
            elif not isinstance(one, (int, float, Undefined)) and one is not None:
                message = f"{type(one).__name__} is neither text, number, list nor mapping"
                raise SecurityError(message)
            if depth > MOST_NESTED:
                message = f"more than {MOST_NESTED} lists hold each other"
                raise TemplateLimitError(message)
            waiting += ((member, depth + 1) for member in members)
        return value

    def _counted(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function whose arguments and result count against the limits."""

        def counted(*args: object, **kwargs: object) -> object:
            for value in (*args, *kwargs.values()):
                self._value(value)
            made = function(*args, **kwargs)
            return self._value([*made] if isinstance(made, Iterator) else made)

        return counted

    def _join(self, values: Iterable[object], separator: str = "") -> str:
        parts = [str(value) for value in values]
        # Before it is made.
        self._spend(len(parts) * len(separator))
        return separator.join(parts)

    def _replace(self, text: object, old: str, new: str) -> str:
        # Before it is made.
        self._spend(f"{text}".count(old) * len(new))
        return f"{text}".replace(old, new)

    def _map(self, values: Iterable[object], *, attribute: str) -> list[object]:
        return [self.getitem(value, attribute) for value in values]


class _CheckedTemplates(BaseLoader):
    """Gives out what was checked and compiled, and reads no file."""

    def __init__(self, codes: Mapping[str, CodeType | None]) -> None:
        self._codes = codes

    def load(
        self,
        environment: Environment,
        name: str,
        globals: MutableMapping[str, Any] | None = None,  # noqa: A002 (Jinja's)
    ) -> Template:
        code = self._codes.get(name)
        if code is None:
            raise TemplateNotFound(name)
        return environment.template_class.from_code(environment, code, globals or {})


def _first(values: Iterable[object]) -> object:
    return next(iter(values), StrictUndefined("there is no first one"))


def _last(values: Iterable[object]) -> object:
    return next(reversed([*values]), StrictUndefined("there is no last one"))


def _sorted(values: Iterable[Any], *, reverse: bool = False) -> list[object]:
    # As Jinja.
    return sorted(values, key=lambda one: one.lower() if isinstance(one, str) else one, reverse=reverse)


def _json(value: object) -> str:
    return json.dumps(value, sort_keys=True, allow_nan=False)


_PLAIN: Mapping[str, Callable[..., object]] = {
    "d": do_default, "default": do_default, "first": _first, "float": do_float, "int": do_int, "items": do_items,
    "last": _last, "length": len, "list": list, "lower": do_lower, "properties": escape_property,
    "property_key": escape_key, "sort": _sorted, "string": str, "tojson": _json, "trim": do_trim, "upper": do_upper,
}  # fmt: skip
FILTERS: Final = tuple(sorted((*_PLAIN, "join", "map", "replace")))


@lru_cache(maxsize=64)
def check_template(text: str, name: str, shown: str) -> CheckedTemplate:
    """Check a template by its syntax, and compile it so that all that it does is counted."""
    environment = TemplateSandbox({})
    unread = CheckedTemplate(shown, len(text))
    try:
        if line := _too_deep_brackets(environment, text):
            return replace(unread, problems=(_nested(Place(shown, line)),))
        tree = environment.parse(text, name, shown)
        parts = _walk(tree)
        uses = tuple(
            TemplateUse(used, line, getattr(node, "ignore_missing", False))
            for node, line, _ in parts
            if (used := _used(node)) is not None
        )
        problems = (problem for node, line, depth in parts for problem in _problems(node, Place(shown, line), depth))
        if distinct := tuple(dict.fromkeys(problems)):
            return replace(unread, uses=uses, problems=distinct)
        _count(tree)
        return replace(unread, uses=uses, code=environment.compile(tree, name, shown))
    except RecursionError as error:
        return replace(unread, problems=(_nested(Place(shown, _line(error))),))
    except (TemplateSyntaxError, ValueError) as error:
        # ValueError: a number of more digits than Python reads.
        message = f"{type(error).__name__}: {getattr(error, 'message', error)}"
        return replace(unread, problems=(Finding("SEA301", Place(shown, _line(error)), message, "fix the template"),))


def _line(error: Exception) -> int:
    """Return the line at which a template can't be parsed."""
    parsers = (frame.f_locals.get("self") for frame, _ in walk_tb(error.__traceback__))
    reached = (parser.stream.current.lineno for parser in parsers if isinstance(parser, Parser))
    return getattr(error, "lineno", None) or next(reached, 0)


def _nested(place: Place) -> Finding:
    hint = "divide it: a macro or a file of its own for a part"
    return Finding("SEA311", place, f"it nests more than {MOST_NESTED} levels deep", hint)


def _too_deep_brackets(environment: Environment, text: str) -> int:
    """Return the line where brackets nest too deeply; 0 for none. Jinja keeps no trace of them in its tree."""
    depth = 0
    for line, kind, value in environment.lex(text):
        if kind == "operator":
            depth += (value in {"(", "[", "{"}) - (value in {")", "]", "}"})
            if depth > MOST_NESTED:
                return line
    return 0


def _walk(tree: nodes.Template) -> list[tuple[nodes.Node, int, int]]:
    """Return each part of a template in its order, with its line and how deeply it is nested; none that is too deep."""
    parts: list[tuple[nodes.Node, int, int]] = []
    waiting: list[tuple[nodes.Node, int, int]] = [(tree, 0, 0)]
    # No recursion: a tree may be deeper than Python's stack.
    while waiting:
        node, above, depth = waiting.pop()
        line = node.lineno or above
        parts.append((node, line, depth))
        if depth <= MOST_NESTED:
            waiting += [(child, line, depth + 1) for child in node.iter_child_nodes()][::-1]
    return parts


def _problems(node: nodes.Node, place: Place, depth: int) -> Iterator[Finding]:
    """Yield what a part of a template may not say, and what may be said instead."""
    if depth > MOST_NESTED:
        yield _nested(place)
    for message, hint in (*_unlisted(node), *_refused_forms(node)):
        yield Finding("SEA311", place, message, hint)


def _unlisted(node: nodes.Node) -> Iterator[tuple[str, str]]:
    if not isinstance(node, (*_EXPRESSIONS, *STATEMENTS)):
        is_operator = isinstance(node, (nodes.BinExpr, nodes.UnaryExpr))
        statements = ", ".join(dict.fromkeys(STATEMENTS.values()))
        hint = "write the result; ~ joins texts" if is_operator else f"statements: {statements}"
        yield f"templates have no {_WORDS.get(type(node), type(node).__name__.lower())}", hint
    for kind, known in ((nodes.Filter, FILTERS), (nodes.Test, TESTS)):
        if isinstance(node, kind) and node.name not in known:
            word = kind.__name__.lower()
            yield f"templates have no {word} {node.name}", f"{word}s: {', '.join(known)}"
    if isinstance(node, nodes.Name) and node.name in _RESERVED:
        yield f"{node.name} can't be used", "there are header, options, and the names that the template sets"
    attribute = node.attr if isinstance(node, nodes.Getattr) else ""
    if isinstance(node, nodes.Getitem) and isinstance(node.arg, nodes.Const):
        attribute = f"{node.arg.value}"
    if attribute.startswith("_"):
        yield f"{attribute} can't be read", "an option has name, value and option"


def _refused_forms(node: nodes.Node) -> Iterator[tuple[str, str]]:
    """Yield what is of a list, but not in this form."""
    if isinstance(node, (nodes.Call, nodes.Filter, nodes.Test)) and (node.dyn_args or node.dyn_kwargs):
        yield "a call takes no * and **", "write each argument"
    if isinstance(node, nodes.For) and node.recursive:
        yield "a loop can't be recursive", "write a loop within the loop"
    if isinstance(node, nodes.Const) and isinstance(node.value, int) and abs(node.value) >= _TOO_LARGE:
        yield "a number is too large", "write it as text"
    if isinstance(node, _USES) and _used(node) is None:
        yield "a file is named by a text", 'as in {% include "_team.txt" %}'


def _used(node: nodes.Node) -> str | None:
    """Return the file that a part of a template includes or imports; `None` where no text names it."""
    value = getattr(getattr(node, "template", None), "value", None)
    return value if isinstance(value, str) else None


def _count(node: nodes.Node) -> int:
    """Make a template count what it does, and return the steps of a part of it.

    A body that runs again and again counts its steps each time; a value counts by its size where that matters.
    """
    own = 1 + len(getattr(node, "data", "")) + (len(f"{node.value}") if isinstance(node, nodes.Const) else 0)
    steps = {id(child): _count(child) for child in node.iter_child_nodes()}
    for field in _COUNTED.get(type(node), ()) if getattr(node, "ctx", "load") == "load" else ():
        part = getattr(node, field)
        setattr(node, field, [_sized(one) for one in part] if isinstance(part, list) else _sized(part))
    if isinstance(node, (nodes.Template, nodes.For, nodes.Macro)):
        body = 1 + sum(steps[id(child)] for child in node.body)
        count = nodes.Filter(nodes.Const(body), _STEPS, [], [], None, None, lineno=node.lineno)
        node.body.insert(0, nodes.ExprStmt(count, lineno=node.lineno))
    return own + sum(steps.values())


def _sized(node: nodes.Expr) -> nodes.Expr:
    if isinstance(node, (nodes.TemplateData, nodes.Const)):
        # Counted as steps.
        return node
    return nodes.Filter(node, _VALUE, [], [], None, None, lineno=node.lineno)


_LONGEST_MESSAGE, _MOST_SHOWN = 300, 100
_FAILURES = (TypeError, ValueError, ArithmeticError, LookupError, AttributeError, RecursionError)
"""What a template can raise besides Jinja's own errors."""
_MAY = "a template has holes and loops, and calculates, reads and reaches nothing"
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True)
class WrittenOption:
    """One option as a template writes it.

    Attributes:
        name: Key or environment variable, in the container's spelling.
        value: The value, unescaped.
        option: Neutral option that it says; empty for one of `serving.overrides.extra`.
    """

    name: str
    value: str
    option: str = ""


@dataclass(frozen=True, slots=True)
class TemplateVariables:
    """What a template may name.

    `options`: the options by topic, `extra` last; a topic without any is empty.
    """

    header: str
    options: Mapping[str, Sequence[WrittenOption]]


def render_template(template: str, variables: TemplateVariables, *, own: Path | None = None) -> str:
    """Render one template, named by its path below `serving_templates/`.

    `own`: folder of templates that override ours; default: none.

    Raises:
        RenderError: SEA301 when the template is missing, broken, or names what there is not; when the folder is
            missing, or has a file that overrides nothing. SEA311 for all that it, and what it includes, may not say,
            and when it does more than templates may.
    """
    from jinja2 import TemplateError  # noqa: PLC0415 (planning and validating need no Jinja)
    from jinja2.exceptions import SecurityError  # noqa: PLC0415 (as above)

    files: dict[str, CheckedTemplate] = {}
    problems = [] if own is None else [*_unused(own)]
    if problems := problems or [*_read(template, Place(_shown(_path(template, own), own)), own, files)]:
        raise RenderError(problems)
    sandbox = TemplateSandbox({name: file.code for name, file in files.items()})
    try:
        return sandbox.get_template(template).render(header=variables.header, options=variables.options)
    except (TemplateError, *_FAILURES) as error:
        cause: Exception = error
    names = {file.shown for file in files.values()}
    lines = [(frame.f_code.co_filename, line) for frame, line in walk_tb(cause.__traceback__)]
    places = [Place(name, line) for name, line in lines if name in names]
    place = places[-1] if places else Place(files[template].shown)
    if isinstance(cause, SecurityError):
        raise RenderError([Finding("SEA311", place, f"{cause}"[:_LONGEST_MESSAGE], _MAY)]) from cause
    message = f"{type(cause).__name__}: {cause}"[:_LONGEST_MESSAGE]
    raise RenderError([Finding("SEA301", place, message, "fix the template")]) from cause


def _read(
    name: str, at: Place, own: Path | None, files: dict[str, CheckedTemplate], above: Sequence[str] = ()
) -> Iterator[Finding]:
    """Read a template and what it includes, and yield every problem of them."""
    path = _path(name, own)
    shown = _shown(path, own)
    if name in above:
        yield Finding("SEA311", at, f"{name} includes itself", "take the line out")
    if name in files:
        return
    home = own if own is not None and path.is_relative_to(own) else templates_folder()
    too_large = f"a template has at most {MOST_SOURCE:,} characters and {MOST_FILES} files, with what it includes"
    try:
        if not follow_links(path).is_relative_to(follow_links(home)):
            yield Finding("SEA311", at, f"{name} leads out of the folder of templates", "copy the file into the folder")
            return
        text = read_text(path, most_bytes=4 * MOST_SOURCE)
    except FileNotFoundError:
        yield Finding("SEA301", at, f"TemplateNotFound: {name}", "check the name")
        return
    except (OSError, ValueError) as error:
        if getattr(error, "errno", None) == errno.EFBIG:
            yield Finding("SEA311", Place(shown), too_large, "shorten it")
        else:
            yield Finding("SEA301", Place(shown), f"it can't be read: {error}", "templates are files of UTF-8 text")
        return
    if len(files) == MOST_FILES or sum(one.size for one in files.values()) + len(text) > MOST_SOURCE:
        yield Finding("SEA311", Place(shown), too_large, "shorten it")
        return
    files[name] = file = check_template(text, name, shown)
    yield from file.problems
    for use in file.uses:
        if not use.is_optional or os.path.lexists(_path(use.name, own)):
            yield from _read(use.name, Place(shown, use.line), own, files, (*above, name))


def render_variables(template: str, variables: TemplateVariables, *, own: Path | None = None) -> dict[str, str]:
    """Render a template of an environment: its lines `NAME=value`; blank lines and lines after `#` are left out.

    Raises:
        RenderError: As `render_template`; SEA301 with every line that is none.
    """
    lines = read_env_lines(render_template(template, variables, own=own))
    where = _shown(_path(template, own), own)
    wrong = [line for line in lines if not _VARIABLE.fullmatch(line.key)]
    if wrong:
        shown = wrong[:_MOST_SHOWN]
        names = [f"line {line.number} of the result, {line.key[:40]!r}, is not NAME=value" for line in shown]
        names += (
            [f"{len(wrong) - len(shown):,} more lines of the result are not NAME=value"] if wrong[_MOST_SHOWN:] else []
        )
        raise RenderError(Finding("SEA301", Place.at(where), name, "fix the template") for name in names)
    return {line.key: line.value for line in lines}


def _path(template: str, own: Path | None) -> Path:
    """Return where a template is: in the project's folder, else in ours."""
    path = templates_folder() / template if own is None else own / template
    return path if own is None or os.path.lexists(path) else templates_folder() / template


def _shown(path: Path, own: Path | None) -> str:
    is_own = own is not None and path.is_relative_to(own)
    return path.as_posix() if is_own else f"serving_templates/{os.path.relpath(path, templates_folder())}"


def _unused(own: Path) -> Iterator[Finding]:
    """Yield what is wrong with a folder of templates: each file in it that overrides none of ours."""
    if not own.is_dir():
        yield Finding(
            "SEA301", Place.at(own.as_posix()), "there is no such folder of templates", "give the folder's path"
        )
        return
    known = sorted(path.relative_to(templates_folder()).as_posix() for path in templates_folder().rglob("*.j2"))
    for path in sorted(path for path in own.rglob("*") if path.is_file()):
        if path.relative_to(own).as_posix() in known or path.name.startswith(("_", ".")) or path.suffix == ".md":
            continue
        hint = f"templates that can be overridden: {', '.join(known)}; a file that they include begins with _"
        yield Finding("SEA301", Place.at(path.as_posix()), "it overrides no template", hint)


@cache
def templates_folder() -> Path:
    """Return the folder of the templates: inside an installed wheel, else at the root of the repository."""
    package = Path(__file__).resolve().parents[1]
    installed = package / "serving_templates"
    return installed if installed.is_dir() else package.parents[2] / "serving_templates"
