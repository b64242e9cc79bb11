"""The base of every frozen document that passes between stages, and its canonical form."""

from __future__ import annotations

import hashlib
import json
from dataclasses import MISSING, replace
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast, get_args

from pydantic import BaseModel, ConfigDict, Field, model_serializer

from seatrial_base.field_facts import Facts, defaults_of, facts_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pydantic import SerializerFunctionWrapHandler
    from pydantic.config import JsonDict

T = TypeVar("T")


class FrozenModel(BaseModel):
    """A pydantic model that refuses unknown fields and can't be changed once made."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class SealedModel(FrozenModel):
    """A document that is written into locks with its digest: fields with `since` are left out at their default."""

    @model_serializer(mode="wrap")
    def _without_later_defaults(self, write: SerializerFunctionWrapHandler) -> dict[str, object]:
        written: dict[str, object] = write(self)
        return {name: value for name, value in written.items() if not _is_left_out(self, name)}


def model_field(
    default: T,
    description: str | None = None,
    *,
    since: str | None = None,
    neutral: object = None,
    planned: bool | Literal["presence"] = True,
    explains: bool = False,
    **more: Any,  # noqa: ANN401 (whatever pydantic's `Field` takes)
) -> T:
    """Return pydantic's `Field` with what is known of it beside its schema."""
    field: Any = Field(default, description=description, **more)
    field.metadata.append(Facts(since=since, neutral=neutral, planned=planned, explains=explains))
    return cast("T", field)  # as type checkers read pydantic's own `Field`


def same_as(kind: type, name: str, more: str = "", *, default: object = MISSING, **changes: Any) -> Any:  # noqa: ANN401
    """Return a field with the text, the bounds and the default of a dataclass's field, as pydantic's `Field`.

    Args:
        more: Sentences that hold of this document alone.
        changes: Other facts, such as a `since` of its own and narrower bounds.
    """
    known = replace(facts_of(kind)[name], option=None, **changes)
    field: Any = Field(
        defaults_of(kind)[name] if default is MISSING else default,
        description=" ".join(filter(None, (known.help, more))),
        gt=known.above,
        ge=known.at_least,
        lt=known.below,
        le=known.at_most,
    )
    field.metadata.append(known)
    return field


def models_in(kind: object) -> Iterator[type[BaseModel]]:
    """Yield the models that a type is made of, the outermost first."""
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        yield kind
        for field in kind.model_fields.values():
            yield from models_in(field.annotation)
    for inner in get_args(kind):
        yield from models_in(inner)


def _is_left_out(document: BaseModel, name: str) -> bool:
    default = type(document).model_fields[name].get_default(call_default_factory=True)
    return facts_of(type(document))[name].leave_out(getattr(document, name), default)


def digested(document: BaseModel) -> dict[str, Any]:
    """Return the fields of a document that count in a digest, as JSON has them.

    Left out is what is only deployed (`Facts.planned`), and what came later (`Facts.since`) and has its default.
    """
    return _counted(document, document.model_dump(mode="json"))


def _counted(document: BaseModel, as_json: Mapping[str, Any]) -> dict[str, Any]:
    counted: dict[str, Any] = {}
    for name, facts in facts_of(type(document)).items():
        if not facts.planned or _is_left_out(document, name):
            continue
        value = getattr(document, name)
        counted[name] = value is not None if facts.planned == "presence" else _counted_in(value, as_json[name])
        # A mapping that came later says nothing either where all of it that is planned has its default.
        if facts.since is not None and isinstance(value, BaseModel) and not counted[name]:
            del counted[name]
    return counted


def _counted_in(value: object, as_json: object) -> object:
    if isinstance(value, BaseModel) and isinstance(as_json, dict):
        return _counted(value, as_json)
    if isinstance(value, tuple | list) and isinstance(as_json, list):
        return [_counted_in(*pair) for pair in zip(value, as_json, strict=True)]
    return as_json


def left_out_or_mapping(schema: JsonDict) -> None:
    """Make the schema of an optional mapping that of the mapping: editors complete it, and null is left out."""
    options = schema.pop("anyOf")
    if isinstance(options, list) and isinstance(options[0], dict):
        schema["$ref"] = options[0]["$ref"]


def canonical_json(document: BaseModel) -> str:
    """Write a document as JSON with sorted keys and no spaces: equal documents give equal bytes."""
    return json.dumps(document.model_dump(mode="json"), sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def digest(text: str) -> str:
    """Return the first 16 hexadecimal digits of the SHA-256 of a text: enough to tell plans apart, short to read."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]
