"""The model of SageMaker's API that the function's boto3 has.

AWS Lambda's runtime brings a boto3 of any age. One that is too old refuses members of a request that it does
not know, and drops them from answers. The archive therefore has a model of its own of the operations that are called
(`models/`, written by `scripts/build_service_model.py`), which botocore finds first; what not even that one knows is
told.
"""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from seatrial_cdk.trials.runtime.log_groups import log

if TYPE_CHECKING:
    from collections.abc import Iterator, MutableMapping

    from botocore.model import Shape

DATA_PATH: Final = "AWS_DATA_PATH"
"""Folders in which botocore looks for models before its own (botocore.loaders)."""
MODELS: Final = Path(__file__).parent / "models"


def use_own_models(environment: MutableMapping[str, str]) -> None:
    """Let botocore find the archive's own models first, in every client that is made from now on."""
    before = environment.get(DATA_PATH, "").split(os.pathsep)
    if f"{MODELS}" not in before:
        environment[DATA_PATH] = os.pathsep.join(filter(None, (f"{MODELS}", *before)))


@cache
def log_version() -> None:
    """Log which boto3 the function runs on, once a process."""
    import boto3  # noqa: PLC0415 (synth and most tests need no boto3)

    log(f"boto3 {boto3.__version__}")


def unknown_members(shape: Shape | None, value: object, place: str) -> Iterator[str]:
    """Yield the members of a value that a shape does not have, by their places.

    Args:
        shape: As the model has it; `None` where it has none.
    """
    if shape is None:
        yield place
    elif shape.type_name == "structure" and isinstance(value, dict):
        for name, each in value.items():
            known = shape.members.get(name)  # type: ignore[attr-defined] # of a structure
            if known is None:
                yield f"{place}.{name}"
            else:
                yield from unknown_members(known, each, f"{place}.{name}")
    elif shape.type_name == "list" and isinstance(value, list):
        for each in value:
            yield from unknown_members(shape.member, each, f"{place}[]")  # type: ignore[attr-defined] # of a list
