"""YAML text that remembers where each value is written; what no file may hold, and what a model says of it."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, get_args

import yaml
from pydantic import BaseModel, ValidationError

from seatrial.specs.shapes import HINTS, MOST_COPIES, SHAPE_HINTS
from seatrial_base.files import read_text
from seatrial_base.findings import Finding, Place
from seatrial_base.secrets import MASK, credentials, holds_credential, redacted
from seatrial_base.text import replaced_text, unprintable
from seatrial_lint.text_nodes import yaml_mistake

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from pydantic_core import ErrorDetails

    from seatrial_base.frozen_model import FrozenModel


FieldPath = tuple[str | int, ...]
Yaml = None | bool | int | float | str | list["Yaml"] | dict[str, "Yaml"]

_PARSER: type[yaml.SafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_TAG = "tag:yaml.org,2002:"
_NO_JSON = {"timestamp": "YAML reads it as a date", "binary": "it is written as binary data"}
# What may stand in a text of several lines and of any language: breaks, spaces, joiners.
_PROSE = "\n\t\u00a0\u2009\u202f\u3000\u200c\u200d\u2028\u2029"
_HINT = "type the text again: it may have been copied with it"
SPEC_SCHEMA = 1
UPGRADE = "a newer release of Seatrial wrote it: upgrade Seatrial"
_LONGEST = 9  # digits of a version


class _Loader(_PARSER):  # type: ignore[misc, valid-type]  # the base is the C parser where there is one
    """YAML as users write it: `1e-3` is a number (as in YAML 1.2), dates and binary data stay text to be refused."""


_EXPONENT = re.compile(r"[-+]?([0-9][0-9_]*\.?[0-9_]*|\.[0-9][0-9_]*)[eE][-+]?[0-9]+$")
_Loader.add_implicit_resolver(f"{_TAG}float", _EXPONENT, list("-+.0123456789"))


class _Dumper(yaml.SafeDumper):
    pass


# What the reader takes for a number must be in quotes where it is a text: PyYAML alone writes a tag 79e54297 bare.
_Dumper.add_implicit_resolver(f"{_TAG}float", _EXPONENT, list("-+.0123456789"))


def yaml_text(document: Mapping[str, object], *, sort_keys: bool = False) -> str:
    """Return a document as YAML that the reader reads as the same document."""
    return yaml.dump(document, Dumper=_Dumper, sort_keys=sort_keys, allow_unicode=True, width=200)


for _name in _NO_JSON:
    _Loader.add_constructor(f"{_TAG}{_name}", yaml.SafeLoader.construct_yaml_str)
for _name in ("set", "omap", "pairs"):
    _Loader.add_constructor(f"{_TAG}{_name}", yaml.SafeLoader.construct_undefined)


MAX_DEPTH, MAX_VALUES = 40, 20_000  # reduce the nesting and some dozens of values
_TOO_LARGE = ("the text is nested too deeply, or its aliases expand to too much text", "reduce the nesting")


@dataclass(frozen=True, slots=True)
class YamlSource:
    """The content of one YAML file.

    Attributes:
        path: The file as the user named it.
        data: The mapping at the top; empty when the file holds problems only.
        lines: The 1-based line of every field, by its path.
        problems: What is wrong with the text itself.
        chosen: The tags that the launch of a product fills, each with the values that may be chosen, none for any.
    """

    path: str
    data: dict[str, Yaml]
    lines: dict[FieldPath, int]
    problems: tuple[Finding, ...] = ()
    chosen: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def read_source(path: Path) -> YamlSource:
    """Read one YAML file; what is wrong with it is returned, not raised."""
    name = path.as_posix()
    try:
        text = read_text(path)
    except FileNotFoundError:
        file = path.with_name(f"{path.name}.yaml")  # some commands take an endpoint's name, the others its file
        meant = [each.as_posix() for each in (file, Path("endpoints") / file.name) if each.is_file()]
        hint = f"did you mean {meant[0]}?" if meant else "check the path"
        return _broken(name, "SEA101", "the file does not exist", hint)
    except (OSError, UnicodeDecodeError) as error:
        return _broken(name, "SEA101", f"the file can't be read: {error}", "use UTF-8")
    return parse_source(text, name)


def parse_source(text: str, name: str) -> YamlSource:
    """Parse YAML text under the name of its file; what is wrong with it is returned, not raised."""
    try:
        if not _is_composable(text):
            return _broken(name, "SEA102", *_TOO_LARGE)
        root = yaml.compose(text, Loader=_Loader)
    except yaml.YAMLError as error:
        return _broken_yaml(name, text, error)
    if not isinstance(root, yaml.MappingNode):
        return _broken(name, "SEA102", "the file is not a mapping of fields", "write its fields, as `field: value`")
    if _is_too_large(root):
        return _broken(name, "SEA102", *_TOO_LARGE)
    # The others walk the whole tree, which has no end where an alias refers to its own parent.
    problems = tuple(_endless(root, name)) or (*_non_string_keys(root, name), *_unlike_their_form(root, name))
    return YamlSource(name, {}, {}, problems) if problems else _constructed(root, text, name)


def _constructed(root: yaml.MappingNode, text: str, name: str) -> YamlSource:
    loader = _Loader(text)
    try:
        data: dict[str, Yaml] = loader.construct_document(root)
    except yaml.YAMLError as error:
        return _broken_yaml(name, text, error)
    finally:
        loader.dispose()
    duplicates: list[Finding] = []
    for path, mapping in _mappings(root):
        first: dict[str, int] = {}
        for key, _ in mapping.value:
            line = key.start_mark.line + 1
            if key.value in first:
                message = f"written a second time (first on line {first[key.value]})"
                duplicates.append(
                    Finding(
                        "SEA103", Place.at(f"{name}:{line}", dotted((*path, key.value))), message, "keep one of them"
                    )
                )
            first.setdefault(key.value, line)
    nodes = [*_nodes(root)]
    # Every value that is neither text, number, truth, list nor mapping.
    no_json = (
        Finding(
            "SEA105",
            Place.at(f"{name}:{node.start_mark.line + 1}", dotted(path)),
            f"{node.value} is not a string: {what}",
            f'quote it: "{node.value}"',
        )
        for path, _, node in nodes
        if isinstance(node, yaml.ScalarNode) and (what := _NO_JSON.get(node.tag.removeprefix(_TAG)))
    )
    return YamlSource(name, data, {path: line for path, line, _ in nodes}, (*duplicates, *no_json))


def _is_composable(text: str) -> bool:
    """Return whether the text is neither too deep nor too large, before it is composed: deep text ends the process."""
    depth = count = 0
    for event in yaml.parse(text, Loader=_Loader):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        count += isinstance(event, yaml.CollectionStartEvent | yaml.ScalarEvent)
        if depth > MAX_DEPTH or count > MAX_VALUES:
            return False
    return True


def _broken(name: str, rule: str, message: str, hint: str, line: int | None = None) -> YamlSource:
    where = name if line is None else f"{name}:{line}"
    return YamlSource(name, {}, {}, (Finding(rule, Place.at(where), message, hint),))


def _broken_yaml(name: str, text: str, error: yaml.YAMLError) -> YamlSource:
    if not isinstance(error, yaml.MarkedYAMLError) or error.problem_mark is None:
        return _broken(name, "SEA102", getattr(error, "problem", None) or "the text can't be parsed", "")
    line, message, hint = yaml_mistake(text, error)
    return _broken(name, "SEA102", message, hint, line)


def _is_too_large(root: yaml.Node) -> bool:
    """Return whether the text, its aliases unfolded, is deeper or larger than any spec."""
    waiting: list[tuple[yaml.Node, tuple[yaml.Node, ...]]] = [(root, ())]
    count = 0
    while waiting:
        node, above = waiting.pop()
        count += 1
        if len(above) > MAX_DEPTH or count > MAX_VALUES:
            return True
        outer = (*above, node)
        inner = (child for _, child in _children(node))
        waiting.extend((child, outer) for child in inner if not any(child is known for known in outer))
    return False


def _endless(node: yaml.Node, name: str, above: tuple[yaml.Node, ...] = ()) -> Iterator[Finding]:
    """Yield each alias that refers to what contains it."""
    for line, child in _children(node):
        if any(child is outer for outer in (*above, node)):
            message = "the alias refers to its own parent"
            yield Finding("SEA102", Place.at(f"{name}:{line}"), message, "write the value out instead of the alias")
        else:
            yield from _endless(child, name, (*above, node))


def _children(node: yaml.Node) -> Iterator[tuple[int, yaml.Node]]:
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            line = key.start_mark.line + 1
            yield from ((line, key), (line, value))
    elif isinstance(node, yaml.SequenceNode):
        yield from ((node.start_mark.line + 1, value) for value in node.value)


_FORMS = {"int": "a whole number", "float": "a number", "bool": "true or false"}
_OTHER_BASES = (
    (re.compile(r"[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?"), "in base 60"),
    (re.compile(r"[-+]?0o?[0-7_]*[1-7][0-7_]*"), "in base 8"),
)
# Characters; a computer's numbers have at most 20 digits, and Python refuses to read 4,301 of them.
_LONGEST_NUMBER = 100


def _unlike_their_form(root: yaml.Node, name: str) -> Iterator[Finding]:
    """Yield every number or truth that can't be read as one, or that users read as another; none is repeated.

    A tag may claim anything of a text, and the text may be a password. YAML 1.1 reads `1:30` as 90 and `010` as 8.
    """
    loader = _Loader("")
    for path, _, node in _nodes(root):
        form = node.tag.removeprefix(_TAG)
        if isinstance(node, yaml.ScalarNode) and form in _FORMS and (wrong := _wrong_form(loader, form, node)):
            yield Finding("SEA105", Place.at(f"{name}:{node.start_mark.line + 1}", dotted(path)), *wrong)
    loader.dispose()


def _wrong_form(loader: yaml.SafeLoader, form: str, node: yaml.ScalarNode) -> tuple[str, str] | None:
    """Return what is wrong with a scalar, and how it is fixed."""
    if len(node.value) > _LONGEST_NUMBER:
        return f"a number has at most {_LONGEST_NUMBER} characters", "quote it, or write a smaller number"
    base = next((base for pattern, base in _OTHER_BASES if pattern.fullmatch(node.value)), "")
    if form != "bool" and base:
        return f"YAML 1.1 reads this number {base}", "write it without colons and leading zeros, or quote it"
    try:
        loader.construct_object(node)
    except (ValueError, KeyError, IndexError):  # of int and float, the words of truth, an empty text
        return f"the tag !!{form} needs {_FORMS[form]}", "leave the tag out"
    return None


def _nodes(node: yaml.Node, path: FieldPath = ()) -> Iterator[tuple[FieldPath, int, yaml.Node]]:
    """Yield every value below a node with its path and the line of its key or item, outer ones first."""
    below: list[tuple[int | str, int, yaml.Node]] = []
    if isinstance(node, yaml.MappingNode):
        below = [(str(key.value), key.start_mark.line + 1, value) for key, value in node.value]
    elif isinstance(node, yaml.SequenceNode):
        below = [(index, value.start_mark.line + 1, value) for index, value in enumerate(node.value)]
    for part, line, value in below:
        yield (*path, part), line, value
        yield from _nodes(value, (*path, part))


def _mappings(root: yaml.MappingNode) -> Iterator[tuple[FieldPath, yaml.MappingNode]]:
    yield (), root
    yield from ((path, node) for path, _, node in _nodes(root) if isinstance(node, yaml.MappingNode))


def _non_string_keys(root: yaml.MappingNode, name: str) -> Iterator[Finding]:
    for path, mapping in _mappings(root):
        for key, _ in mapping.value:
            if not isinstance(key, yaml.ScalarNode):
                where = f"{name}:{key.start_mark.line + 1}"
                yield Finding(
                    "SEA105", Place.at(where, dotted(path)), "a key is a list or a mapping", "write `name: value`"
                )
            elif key.tag not in ("tag:yaml.org,2002:str", "tag:yaml.org,2002:merge"):
                where = f"{name}:{key.start_mark.line + 1}"
                yield Finding(
                    "SEA105", Place.at(where, dotted(path)), f"the key {key.value!r} is not a string", "quote it"
                )


def dotted(path: FieldPath) -> str:
    """Write a path as users read it: `serving.instance_types[0]`."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def yaml_texts(node: Yaml, path: FieldPath = ()) -> Iterator[tuple[FieldPath, str, str]]:
    """Yield every text and number with its path and the name of its field; names themselves too: they have no name.

    An item of a list has the name of the list, or of the option before it, as in `["--api-key", "…"]`.
    """
    if isinstance(node, str | int | float) and not isinstance(node, bool):
        yield path, next((str(name) for name in reversed(path) if isinstance(name, str)), ""), str(node)
    elif isinstance(node, dict):
        for key, value in node.items():
            yield (*path, key), "", key
            yield from yaml_texts(value, (*path, key))
    elif isinstance(node, list):
        for index, value in enumerate(node):
            option = node[index - 1] if index else None
            if isinstance(value, str) and isinstance(option, str) and option.startswith("-"):
                yield (*path, index), option, value
            else:
                yield from yaml_texts(value, (*path, index))


_EXACT = 2**53  # beyond it a float no longer tells whole numbers apart
_TYPE_ERRORS = ("_type", "_parsing", "_from_float", "model_attributes_type")


def validation_problems(
    error: ValidationError, model: type[FrozenModel], document: Document, files: Mapping[str, type[BaseModel]]
) -> Iterator[Finding]:
    """Yield one problem per finding of pydantic, placed where the user wrote the value.

    `files`: the models of all files by what users call each, for a field that belongs into another.
    """
    every = error.errors(include_url=False)
    beside = _not_indented(every, model)
    for place, children in beside.items():
        lines = " and ".join(document.where(path).rpartition(":")[2] for path in children)
        message = f"it is empty: its fields are not indented (line {lines})"
        yield document.problem(place, "SEA105", message, f"indent them below {place[-1]}")
    merged = {*beside, *(path for children in beside.values() for path in children)}
    for detail in every:
        place = detail["loc"]
        if place in merged:
            continue
        inner = (other["loc"] for other in every if len(other["loc"]) > len(place))
        # Pydantic counts the right items alone.
        if detail["type"] == "too_short" and any(loc[: len(place)] == place for loc in inner):
            continue
        path = written_path(detail["loc"])
        parent = path[:-1] if detail["type"] in ("missing", "extra_forbidden") else path
        where = document.where(parent if detail["type"] == "missing" else path)
        rule, message, hint = _explain(detail, path, model, files)
        yield Finding(rule, Place.at(where, document.field(path)), message, hint)


def _not_indented(every: list[ErrorDetails], model: type[BaseModel]) -> dict[FieldPath, list[FieldPath]]:
    """Return each field without a value, with the unknown fields beside it that are its own."""
    unknown = [detail["loc"] for detail in every if detail["type"] == "extra_forbidden"]
    empty = [detail["loc"] for detail in every if detail["type"] in _MAPPINGS and detail["input"] is None]
    beside = {
        place: [path for path in unknown if path[:-1] == place[:-1] and path[-1] in _fields_at(model, place)]
        for place in empty
    }
    return {place: children for place, children in beside.items() if children}


def written_path(loc: tuple[int | str, ...]) -> FieldPath:
    """Drop the names of union members that pydantic puts into a location."""
    return tuple(part for part in loc if isinstance(part, int) or part not in ("str", "int", "float", "bool", "[key]"))


def _explain(
    detail: ErrorDetails, path: FieldPath, model: type[FrozenModel], files: Mapping[str, type[BaseModel]]
) -> tuple[str, str, str]:
    kind, value = detail["type"], detail["input"]
    if kind == "missing":
        return "SEA106", "the field is required", f"add `{path[-1]}: …`"
    if kind == "extra_forbidden":
        return "SEA104", "the field is unknown", _unknown_hint(path, model, files)
    message = f"{_lower(detail['msg'])}, not {value!r}" if not isinstance(value, dict) else _lower(detail["msg"])
    if kind.endswith(_TYPE_ERRORS):
        hint = _type_hint(kind, value, _fields_at(model, path))
        if tuple(detail["loc"]) != path:  # one of several types, each of which has its error
            home = _unknown_hint(path, model, files)
            message, hint = "should be a text, a number or a truth", home if home.startswith("it ") else hint
        return "SEA105", message, hint
    if kind == "too_long" and isinstance(value, list):
        most = detail.get("ctx", {}).get("max_length")
        return "SEA107", f"the list has {len(value)} items, and at most {most} are allowed", ""
    if kind == "too_short":
        return "SEA107", "the list is empty", "give at least one item, or leave the field out"
    return "SEA107", message, _bound_hint(detail, path)


def _unknown_hint(path: FieldPath, model: type[BaseModel], files: Mapping[str, type[BaseModel]]) -> str:
    """Return what the user may have meant: a field of this place with nearly the name, or this field of another."""
    name, known = str(path[-1]), _fields_at(model, path[:-1])
    hints = [f"did you mean `{match}`?" for match in difflib.get_close_matches(name, known, n=1)]
    if homes := [dotted(home) for home in _homes(model, name)][:3]:
        hints.append("it belongs below " + " or ".join(", ".join(f"`{home}`" for home in homes).rsplit(", ", 1)))
    else:
        others = (file for file, other in files.items() if other is not model and name in other.model_fields)
        hints += [f"it belongs into {file}" for file in others]
    return "; ".join(hints) or f"known fields: {', '.join(known)}"


def _homes(model: type[BaseModel], name: str, path: FieldPath = ()) -> Iterator[FieldPath]:
    """Yield where a model has a field of a name, at most two levels below it."""
    if path and name in model.model_fields:
        yield path
    for key, info in model.model_fields.items() if len(path) < 2 else ():  # noqa: PLR2004 (the levels)
        if inner := _model_in(info.annotation):
            yield from _homes(inner, name, (*path, key))


def _lower(message: str) -> str:
    text = message
    for prefix in ("Value error, ", "Input ", "String ", "Value "):
        text = text.removeprefix(prefix)
    return text[:1].lower() + text[1:]


_QUOTE = "quote it: YAML reads yes, no, on and off as booleans"
_WORD_OF_TRUTH = re.compile(r"'(yes|no|on|off)'")


def _bound_hint(detail: ErrorDetails, path: FieldPath) -> str:
    context = detail.get("ctx", {})
    if isinstance(detail["input"], bool) and _WORD_OF_TRUTH.search(str(context.get("expected", ""))):
        return _QUOTE
    if path[:2] == ("model", "shape"):
        return SHAPE_HINTS.get(str(path[-1]), "")
    if path[-1:] == ("max_copies",) and detail["input"] == 0:
        where = "the schedule's min_copies" if "schedules" in path else "scaling.min_copies"
        return f"to scale to zero, set {where}: 0; of 0 copies at most, none could ever answer"
    if context.get("le") == MOST_COPIES:
        return f"the limit is {MOST_COPIES:,} copies"
    return HINTS.get(str(context.get("pattern", "")), "")


_MAPPINGS = ("model_type", "model_attributes_type", "dict_type")


def _type_hint(kind: str, value: object, fields: tuple[str, ...]) -> str:
    if kind in ("tuple_type", "list_type"):
        return f"write a list: [{value}]" if isinstance(value, str) else "write a list, or leave the field out"
    if kind in _MAPPINGS and fields:
        return f"write its fields: {', '.join(fields)}; or leave it out"
    return _scalar_hint(kind, value)


def _scalar_hint(kind: str, value: object) -> str:
    if kind == "string_type" and isinstance(value, int | float) and not isinstance(value, bool):
        return "write it in quotes"
    if isinstance(value, bool):
        return _QUOTE
    if isinstance(value, float) and value.is_integer() and abs(value) < _EXACT:
        return f"write it as a whole number: {int(value)}"
    if isinstance(value, str) and kind.startswith("date"):
        return 'write a date in quotes: "2026-01-05"'
    if isinstance(value, str):
        return "write the number without quotes and units"
    return "`seatrial schema` prints the type of every field"


def _fields_at(model: type[BaseModel], path: FieldPath) -> tuple[str, ...]:
    current: type[BaseModel] = model
    for part in (part for part in path if isinstance(part, str)):  # the place in a list says nothing about its items
        field = current.model_fields.get(str(part))
        inner = _model_in(field.annotation) if field else None
        if inner is None:
            return ()
        current = inner
    return tuple(current.model_fields)


def _model_in(annotation: object) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((model for inner in get_args(annotation) if (model := _model_in(inner)) is not None), None)


OVERRIDES = "environments"
_SHORT = {"objective": "goal"}
"""Fields of a spec whose text stands for a mapping with this field alone."""


@dataclass(frozen=True, slots=True)
class Document:
    """A merged mapping that still knows where each of its values was written.

    Attributes:
        path: The file.
        data: The merged fields, without the overrides of other environments.
        origins: For each field path, the path under which the user wrote it.
        lines: The 1-based line of each path as written.
        chosen: As of its source.
    """

    path: str
    data: dict[str, Yaml]
    origins: Mapping[FieldPath, FieldPath]
    lines: Mapping[FieldPath, int]
    chosen: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def value(self, *path: str) -> Yaml:
        """Return what is at a path, or `None` where nothing does."""
        node: Yaml = self.data
        for part in path:
            node = node.get(part) if isinstance(node, dict) else None
        return node

    def problem(self, path: FieldPath, rule: str, message: str, hint: str = "") -> Finding:
        """Return a problem placed where the user wrote the field."""
        return Finding(rule, Place.at(self.where(path), self.field(path)), message, hint)

    def where(self, path: FieldPath) -> str:
        """Return `file:line` of a field, or of its nearest parent that was written."""
        written = self.origin(path)
        while written and written not in self.lines:
            written = written[:-1]
        return f"{self.path}:{self.lines[written]}" if written in self.lines else self.path

    def field(self, path: FieldPath) -> str:
        """Return the dotted path of a field as the user wrote it."""
        return dotted(self.origin(path))

    def origin(self, path: FieldPath) -> FieldPath:
        """Return the path under which a field, or its nearest written parent, is in the file."""
        for cut in range(len(path), 0, -1):
            if path[:cut] in self.origins:
                return self.origins[path[:cut]] + path[cut:]
        return path


def merge_environment(source: YamlSource, environment: str | None) -> Document:
    """Lay the overrides of one environment over the base; `null` in an override removes the base's value."""
    base = {key: value for key, value in source.data.items() if key != OVERRIDES}
    origins: dict[FieldPath, FieldPath] = {path: path for path in source.lines if path[0] != OVERRIDES}
    every = source.data.get(OVERRIDES)
    override = every.get(environment) if isinstance(every, dict) and environment else None
    if isinstance(override, dict):
        base = overlay(base, override, (), (OVERRIDES, environment or ""), origins)
    return Document(source.path, base, origins, source.lines, source.chosen)


def overlay(
    base: dict[str, Yaml],
    override: dict[str, Yaml],
    path: FieldPath,
    written: FieldPath,
    origins: dict[FieldPath, FieldPath],
) -> dict[str, Yaml]:
    """Lay fields over others; `null` removes a field.

    Args:
        path: Where both are in the merged document.
        written: Where the override was written.
        origins: Where each field of the merged document was written; the override's are added.
    """
    merged = dict(base)
    for key, given in override.items():
        short = "" if path else _SHORT.get(key, "")
        origins[(*path, key)] = (*written, key)
        # As mappings both keep what the other doesn't say; a text alone would set the rest to its defaults in silence.
        old, value = (_in_full(each, short) for each in (merged.get(key), given))
        if value is None:
            merged.pop(key, None)
        elif isinstance(old, dict) and isinstance(value, dict):
            merged[key] = overlay(old, value, (*path, key), (*written, key), origins)
        else:
            # A list or a text replaces the whole: places within the old value would be wrong lines.
            merged[key] = value
            for inner in [known for known in origins if known[: len(path) + 1] == (*path, key) != known]:
                del origins[inner]
    return merged


def _in_full(value: Yaml, short: str) -> Yaml:
    return {short: value} if short and isinstance(value, str) else value


def character_problems(source: YamlSource) -> Iterator[Finding]:
    """Yield each field whose name or value holds such a character, those of every environment's overrides included."""
    for path, name, text in yaml_texts(source.data):
        if characters := unprintable(
            text, layout=_PROSE if (bool(name) and (path[-1] == "description" or path[-2:-1] == ("extra",))) else ""
        ):
            where = f"{source.path}:{source.lines[path]}" if path in source.lines else source.path
            yield Finding("SEA118", Place.at(where, dotted(path)), f"the text holds {characters}", _HINT)


_MESSAGE = "looks like a credential in plain text"
_SHORTEST = 6  # a shorter value is hidden by no search: it stands in other words too
_STORE_IT = "revoke it, store a new one in Secrets Manager and name that in model.hub_token_secret"


def secret_problems(source: YamlSource) -> Iterator[Finding]:
    """Yield each field whose name or value holds a credential, those of every environment's overrides included."""
    for path, name, text in yaml_texts(source.data):
        if holds_credential(text, name=name):
            where = f"{source.path}:{source.lines[path]}" if path in source.lines else source.path
            yield Finding("SEA113", Place.at(where, dotted(path)), _MESSAGE, _STORE_IT)


WRITE_IT_OUT = "write the value itself; a hub token is named in model.hub_token_secret"


def reference_problems(source: YamlSource) -> Iterator[Finding]:
    """Yield each field whose name or value CloudFormation or the CDK would replace, in whichever environment."""
    for path, _, text in yaml_texts(source.data):
        if reference := replaced_text(text):
            where = f"{source.path}:{source.lines[path]}" if path in source.lines else source.path
            yield Finding("SEA137", Place.at(where, dotted(path)), f"the text holds {reference}", WRITE_IT_OUT)


def file_problems(source: YamlSource) -> Iterator[Finding]:
    """Yield what is wrong with a file whatever it describes.

    That is its name, YAML, credentials, characters that no one sees, and what would be replaced when it is deployed.
    """
    # The name is repeated in comments of CI, in reports and commands: other signs would end what they are written into.
    name = source.path.rpartition("/")[2]
    if name and not _FILE_NAME.fullmatch(name):
        hint = "rename the file: letters, digits, blanks and . , _ - + @ = ( ) are taken"
        yield Finding("SEA107", Place.at(source.path), "the name of the file holds other signs than names have", hint)
    yield from source.problems
    yield from secret_problems(source)
    yield from character_problems(source)
    yield from reference_problems(source)


_FILE_NAME = re.compile(r"[\w .,+@=()-]+")


def secret_values(source: YamlSource) -> tuple[str, ...]:
    """Return the credentials of a file that only the name of their field tells, the longest first."""
    spans = ((text, one) for _, name, text in yaml_texts(source.data) for one in credentials(text, name=name))
    values = {text[one.start : one.end] for text, one in spans if one.end - one.start >= _SHORTEST}
    return tuple(sorted(values, key=len, reverse=True))


def without_secrets(problems: Iterable[Finding], secrets: Iterable[str] = ()) -> Iterator[Finding]:
    """Yield the problems as they may be shown: what the user wrote is quoted in them.

    `secrets`: values that must not be repeated although their form does not tell them.
    """

    def shown(text: str) -> str:
        for secret in secrets:
            text = text.replace(secret, MASK)
        return redacted(text)

    for problem in problems:
        yield replace(
            problem,
            place=Place.at(redacted(problem.where), redacted(problem.field)),
            message=shown(problem.message),
            hint=redacted(problem.hint),
        )


def compared(version: object, known: str) -> int | None:
    """Return a version less the one that is known: below 0 for an older, above for a newer; `None` for no version."""
    text = str(version)
    return int(text) - int(known) if text.isdecimal() and len(text) <= _LONGEST else None


def newer_schema(source: YamlSource) -> Finding | None:
    """Return the one problem of a file that a newer release wrote; `None` when this release reads it.

    Whatever else seems wrong with such a file may be right in its own schema.
    """
    version = source.data.get("schema_version")
    if not isinstance(version, int) or isinstance(version, bool) or version <= SPEC_SCHEMA:
        return None
    where = f"{source.path}:{source.lines[('schema_version',)]}"
    message = f"schema_version is {version}; this release reads {SPEC_SCHEMA}"
    return Finding("SEA122", Place.at(where, "schema_version"), message, UPGRADE)
