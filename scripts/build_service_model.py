"""Writes what the trial function knows of SageMaker's API: its own operations and their shapes, without prose.

    python scripts/build_service_model.py

They are taken from the installed botocore (Apache License 2.0), whose model of the whole service has 4 MB. The function
runs on the boto3 of AWS Lambda's runtime, whose age nobody pins; one that is too old refuses members that it does not
know, and drops them from answers.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import botocore
from botocore.loaders import Loader

if TYPE_CHECKING:
    from collections.abc import Iterator

Json: TypeAlias = bool | int | float | str | list["Json"] | dict[str, "Json"] | None
Model = dict[str, Json]

ROOT = Path(__file__).resolve().parent.parent
MODELS = ROOT / "constructs" / "seatrial_cdk" / "trials" / "runtime" / "models"
SERVICE, VERSION = "sagemaker", "2017-07-24"
OPERATIONS = (
    "CreateInferenceComponent",
    "DeleteInferenceComponent",
    "DescribeEndpoint",
    "DescribeInferenceComponent",
    "DescribeModel",
    "ListInferenceComponents",
    "ListTags",
    "UpdateInferenceComponentRuntimeConfig",
)
PROSE = "documentation"


def service_model() -> Model:
    """Return the model of the operations that the function calls."""
    whole: Model = Loader().load_service_model(SERVICE, "service-2", VERSION)
    operations = {name: _plain(_at(whole, "operations", name)) for name in OPERATIONS}
    names: dict[str, None] = {}
    for operation in operations.values():
        for name in _shapes_in(operation):
            _collect(whole, name, names)
    shapes: Model = {name: _plain(_at(whole, "shapes", name)) for name in sorted(names)}
    return {
        "version": whole["version"],
        "metadata": whole["metadata"],
        "operations": {**operations},
        "shapes": shapes,
    }


def _at(model: Model, kind: str, name: str) -> Json:
    found = model[kind]
    return found[name] if isinstance(found, dict) else None


def _plain(value: Json) -> Json:
    """Return a value without its prose; a member may be named as the prose is."""
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items() if key != PROSE or not isinstance(each, str)}
    return [_plain(each) for each in value] if isinstance(value, list) else value


def _shapes_in(value: Json) -> Iterator[str]:
    """Yield the names of the shapes that an operation or a shape refers to."""
    if isinstance(value, dict):
        for key, each in value.items():
            if key == "shape" and isinstance(each, str):
                yield each
            else:
                yield from _shapes_in(each)
    elif isinstance(value, list):
        for each in value:
            yield from _shapes_in(each)


def _collect(whole: Model, name: str, names: dict[str, None]) -> None:
    if name not in names:
        names[name] = None
        for each in _shapes_in(_at(whole, "shapes", name)):
            _collect(whole, each, names)


def written(model: Model) -> str:
    """Return a model as its file holds it: a value a line, so that a refresh reads as a diff."""
    return json.dumps(model, indent=0, sort_keys=True) + "\n"


def main() -> None:
    """Write the model, and of which botocore it is."""
    folder = MODELS / SERVICE / VERSION
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "service-2.json").write_text(written(service_model()))
    (MODELS / "botocore.txt").write_text(f"{botocore.__version__}\n")


if __name__ == "__main__":
    main()
