"""Values of arguments that no template can hold or that SageMaker refuses: SEA439, all of an endpoint at once."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from math import inf, isfinite
from typing import TYPE_CHECKING, Literal, get_args, overload

from aws_cdk import Annotations, Duration, Size, SizeRoundingBehavior, Token

from seatrial_base.errors import SpecError
from seatrial_base.findings import Finding, Place
from seatrial_cdk.place import TOKEN_MARKER

if TYPE_CHECKING:
    from collections.abc import Iterator

    from constructs import Construct

_MEASURED = re.compile(r" \| (?:Duration|Size)")
RULE = "SEA439"
Unit = Literal["ms", "s", "minutes", "days", "mb", "gb"]
"""Of a number, as the name of its argument ends; sizes are in MiB and GiB, as the API means its `InMb` and `InGB`."""
_KINDS: dict[str, tuple[tuple[type, ...], str]] = {
    "int": ((int,), "a whole number"),
    "float": ((int, float), "a number"),
    "str": ((str,), "text"),
    "bool": ((bool,), "True or False"),
}
CHOICES: dict[str, tuple[str, ...]] = {
    "RequestRouting.strategy": ("LEAST_OUTSTANDING_REQUESTS", "RANDOM", "PREFIX_AWARE"),
    "InstanceScaleIn.strategy": ("IDLE_RELEASE", "CONSOLIDATION"),
    "CopyPlacement.strategy": ("SPREAD", "BINPACK"),
    "DataCapture.capture": ("input", "output"),
    "TrafficShift.kind": ("all_at_once", "canary", "linear", "rolling"),
}
S3_URIS = ("ServingContainer.weights_s3_uri", "ServingContainer.readable_s3_uri")


@dataclass(frozen=True, slots=True)
class NumberBounds:
    """The least and the greatest value of a number.

    Attributes:
        high: The greatest; `None` without an end.
    """

    low: float
    high: float | None = None

    def hold(self, value: float) -> bool:
        """Return whether a value is within them."""
        return self.low <= value < inf and (self.high is None or value <= self.high)

    def __str__(self) -> str:
        return f"{self.low:g} or more" if self.high is None else f"{self.low:g} to {self.high:g}"


AT_LEAST_ONE, START_S = NumberBounds(1), NumberBounds(60, 3600)
BOUNDS: dict[str, NumberBounds] = {
    "VariantInstances.initial_count": AT_LEAST_ONE,
    "VariantInstances.min_count": NumberBounds(0),
    "VariantInstances.max_count": AT_LEAST_ONE,
    "VariantInstances.volume_size_gb": NumberBounds(1, 512),
    "VariantInstances.startup_timeout_s": START_S,
    "VariantInstances.download_timeout_s": START_S,
    "VariantInstances.provision_timeout_s": NumberBounds(300, 3600),
    "InstanceScaleIn.cooldown_minutes": NumberBounds(5, 1440),
    "InstanceScaleIn.max_step": NumberBounds(1, 100),
    "RequestRouting.prefix_length": NumberBounds(1024, 65_536),
    "RequestRouting.concurrency_threshold": NumberBounds(1, 1024),
    "ComponentCopies.accelerators": AT_LEAST_ONE,
    "ComponentCopies.memory_min_mb": NumberBounds(128),
    "ComponentCopies.memory_max_mb": NumberBounds(128),
    "ComponentCopies.cpu_cores": NumberBounds(0.25),
    "ComponentCopies.max_copies": AT_LEAST_ONE,
    "ComponentCopies.update_batch": AT_LEAST_ONE,
    "ComponentCopies.startup_timeout_s": START_S,
    "ComponentCopies.download_timeout_s": START_S,
    "CopyPlacement.max_imbalance": NumberBounds(0, 100),
    "AsynchronousInference.max_concurrent_invocations": NumberBounds(1, 1000),
    "ModelVariant.weight": NumberBounds(0),
    "TrafficShift.percent": NumberBounds(5, 50),
    "TrafficShift.wait_s": NumberBounds(0, 3600),
    "TrafficShift.termination_wait_s": NumberBounds(0, 3600),
    "ScalingLimits.scale_out_cooldown_s": NumberBounds(0),
    "ScalingLimits.scale_in_cooldown_s": NumberBounds(0),
}
"""SageMaker API reference; the schema of each resource in the CloudFormation registry has the same."""


@overload
def in_unit(value: None, unit: Unit) -> None: ...
@overload
def in_unit(value: int | Duration | Size, unit: Unit) -> int: ...
@overload
def in_unit(value: float | Duration, unit: Unit, *, is_whole: Literal[False]) -> float: ...
@overload
def in_unit(value: float | Duration | None, unit: Unit, *, is_whole: Literal[False]) -> float | None: ...
def in_unit(value: float | Duration | Size | None, unit: Unit, *, is_whole: bool = True) -> float | None:
    """Return a time or a size of the CDK as a number of a unit; a number is in the unit already.

    Args:
        is_whole: The number has to be whole.

    Raises:
        SpecError: SEA439 for what the unit does not measure, a part of it, and a token in another unit.
    """
    if not isinstance(value, (Duration, Size)):
        return value
    try:
        made = _measured(value, unit)
    except RuntimeError as error:  # the CDK does not convert a token
        hint = f"give the number of {unit}, or make it of one"
        raise SpecError.of(RULE, f"a time or size that is a token has another unit than {unit}", hint=hint) from error
    if made is None:
        raise SpecError.of(RULE, f"{_text(value)} is not in {unit}", hint="a Duration is a time, a Size is bytes")
    if Token.is_unresolved(made):
        return made
    if made % 1 and is_whole:
        raise SpecError.of(RULE, f"{made:g} {unit} is no whole number", hint=f"give whole {unit}")
    return made if made % 1 else int(made)


def _text(value: Duration | Size) -> str:
    if value.is_unresolved():
        return f"a {type(value).__name__}"
    if isinstance(value, Duration):
        return f"a Duration of {value.to_human_string()}"
    return f"a Size of {value.to_mebibytes(rounding=SizeRoundingBehavior.NONE):g} MiB"


def _measured(value: Duration | Size, unit: Unit) -> float | None:
    """Return a time or size in a unit, in parts of it too; `None` where the unit is of the other kind."""
    if isinstance(value, Size):
        sizes = {"mb": value.to_mebibytes, "gb": value.to_gibibytes}
        return sizes[unit](rounding=SizeRoundingBehavior.NONE) if unit in sizes else None
    to_s = value.to_seconds
    times = {"ms": value.to_milliseconds, "s": to_s, "minutes": value.to_minutes, "days": value.to_days}
    return times[unit](integral=False) if unit in times else None


def check_values(scope: Construct, props: Mapping[str, object | None]) -> None:
    """Report values that SageMaker refuses as errors of the CDK (SEA439); tokens are not known yet.

    Args:
        props: Dataclasses of arguments, by the argument's name; `None` has no values.

    Raises:
        SpecError: SEA439 with all of them when one has a wrong type, or is no choice, so that there is no template.
    """
    wrong: list[Finding] = []
    refused: list[Finding] = []
    for name, value in props.items():
        if value is not None:
            wrong += _wrong(scope, name, value)
            refused += _refused(scope, name, value)
    if wrong:
        raise SpecError([*wrong, *refused])
    for problem in refused:
        Annotations.of(scope).add_error(f"{RULE}: {problem.field} {problem.message}")


def check_number(scope: Construct, name: str, value: float, bounds: NumberBounds) -> None:
    """Report one number that is out of its bounds as an error of the CDK (SEA439).

    Raises:
        SpecError: SEA439 of infinity and what is no number, at which the CDK's process ends.
    """
    if not isfinite(value):
        raise SpecError.of(RULE, f"{name} is {value}; it is {bounds}", where=scope.node.path)
    if not bounds.hold(value) and not Token.is_unresolved(value):
        Annotations.of(scope).add_error(f"{RULE}: {name} is {value:g}; it is {bounds}")


def _values(value: object) -> Iterator[tuple[str, str, str, object]]:
    """Yield field, its name with that of its class, its type and its value; nothing of what is no dataclass.

    A time or a size is yielded as the number that the field's name asks for, so that the bounds hold of it.
    """
    for field in fields(value) if hasattr(value, "__dataclass_fields__") else ():  # type: ignore[arg-type] # it is one
        kind, given = str(field.type), getattr(value, field.name)
        if isinstance(given, (Duration, Size)):
            given = _number(given, kind, field.name)
        yield field.name, f"{type(value).__name__}.{field.name}", _MEASURED.sub("", kind), given


def _number(value: Duration | Size, kind: str, name: str) -> object:
    """Return a time or size in the unit of its field; a text of it where the field takes none."""
    unit, measured = name.rpartition("_")[2], type(value).__name__
    known: list[Unit] = [each for each in get_args(Unit) if each == unit and measured in kind]
    try:
        return in_unit(value, known[0]) if known else _text(value)
    except SpecError as error:
        return error.problems[0].message


def _wrong(scope: Construct, name: str, props: object) -> Iterator[Finding]:
    """Yield values of a wrong type and words that are no choice."""
    for field, key, kind, value in _values(props):
        if hasattr(value, "__dataclass_fields__"):
            yield from _wrong(scope, f"{name}.{field}", value)
        elif kind == "Mapping[str, str]" and isinstance(value, Mapping):  # its values may be secrets
            others = [f"{each}" for each, text in value.items() if not isinstance(text, str)]
            yield from (
                Finding(RULE, Place.at(scope.node.path, f"{name}.{field}.{each}"), "is no text") for each in others
            )
        elif (expected := _expected(key, kind, value)) is not None and not (
            hasattr(value, "__jsii_type__") or _is_token(value)
        ):
            yield Finding(RULE, Place.at(scope.node.path, f"{name}.{field}"), f"is {value!r}; it is {expected}")


def _expected(key: str, kind: str, value: object) -> str | None:
    """Return what a value has to be; `None` when it is that."""
    if (choices := CHOICES.get(key)) is not None:
        chosen = value if isinstance(value, (tuple, list)) else (value,)
        known = bool(chosen) and all(map(choices.__contains__, chosen))
        return None if known else " or ".join(choices)
    if kind == "tuple[str, ...]":
        listed = isinstance(value, (tuple, list)) and all(isinstance(each, str) for each in value)
        return None if listed else "a tuple of text"
    if isinstance(value, float) and not isfinite(value):
        return "a finite number"
    plain, _, optional = kind.partition(" | ")
    types, text = _KINDS.get(plain, ((object,), ""))
    is_flag = isinstance(value, bool) and plain in {"int", "float"}
    fits = (isinstance(value, types) and not is_flag) or (value is None and optional == "None")
    return None if fits or optional not in {"", "None"} else text


def _is_token(value: object) -> bool:
    # The CDK's process ends at a number that JSON lacks.
    is_known = isinstance(value, str) or (isinstance(value, (int, float)) and isfinite(value))
    return is_known and Token.is_unresolved(value)


def _refused(scope: Construct, name: str, props: object) -> Iterator[Finding]:
    """Yield numbers out of their bounds and S3 URIs that name no bucket."""
    for field, key, _, value in _values(props):
        if hasattr(value, "__dataclass_fields__"):
            yield from _refused(scope, f"{name}.{field}", value)
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        bounds = BOUNDS.get(key)
        if bounds and is_number and not bounds.hold(value) and not _is_token(value):  # type: ignore[arg-type]
            yield Finding(RULE, Place.at(scope.node.path, f"{name}.{field}"), f"is {value}; it is {bounds}")
        if isinstance(value, str) and (text := _wrong_text(key, value)) is not None:
            yield Finding(RULE, Place.at(scope.node.path, f"{name}.{field}"), f"is {value}; {text}")


def _wrong_text(key: str, value: str) -> str | None:
    """Return how a text has to be written; `None` when it is."""
    if key in S3_URIS and not names_bucket(value):
        return "write it as s3://BUCKET/PREFIX/"
    if key == "VariantInstances.instance_type" and not value.startswith(("ml.", TOKEN_MARKER)):
        return "write it with ml. in front, as ml.g6.2xlarge"
    return None


def names_bucket(s3_uri: str) -> bool:
    """Return whether a text is an S3 URI with a bucket, which may be a token."""
    return s3_uri.startswith("s3://") and bool(s3_uri.removeprefix("s3://").partition("/")[0])
