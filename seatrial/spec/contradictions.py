"""Fields that exclude or need one another, looked up in the raw document so that they show beside other errors."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from seatrial.catalog import jumpstart
from seatrial.spec.shape_rules import shape_problems
from seatrial.spec.speculation_rules import speculation_problems

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from seatrial.errors import Problem
    from seatrial.spec.merge import Document

MOST_HUB_NAME = 96


def contradictions(document: Document) -> Iterator[Problem]:
    """Yield every contradiction and missing file of an endpoint's document."""
    for rule in _RULES:
        yield from rule(document)


def _given(document: Document, parent: str, names: tuple[str, ...]) -> list[str]:
    return [name for name in names if document.value(parent, name) is not None]


def _model_source(document: Document) -> Iterator[Problem]:
    if not isinstance(document.value("model"), dict):
        return
    given = _given(document, "model", ("hub_id", "s3_uri", "jumpstart_id"))
    if given == ["s3_uri", "jumpstart_id"]:
        return
    if not given:
        yield document.problem(("model",), "SEA106", "the model has no source", "give hub_id, s3_uri or jumpstart_id")
    if len(given) > 1:
        message = f"{' and '.join(given)} exclude each other"
        yield document.problem(("model", given[1]), "SEA108", message, "keep the source that is meant")


def _model_details(document: Document) -> Iterator[Problem]:
    revision, hub = document.value("model", "revision"), document.value("model", "hub_id")
    if revision is not None and hub is None:
        message = "a revision belongs to a hub_id, and there is none"
        yield document.problem(("model", "revision"), "SEA108", message, "remove it, or give the hub_id")
    metadata, jumpstart_id = document.value("model", "jumpstart_metadata"), document.value("model", "jumpstart_id")
    if metadata is not None and jumpstart_id is None:
        message = "metadata belongs to a jumpstart_id, and there is none"
        yield document.problem(("model", "jumpstart_metadata"), "SEA108", message, "remove it, or give the id")


def _hub_id(document: Document) -> Iterator[Problem]:
    """Yield what the hub refuses of an id's name, and no pattern says."""
    hub_id = document.value("model", "hub_id")
    name = hub_id.rpartition("/")[2] if isinstance(hub_id, str) else ""
    if len(name) > MOST_HUB_NAME:
        message = f"the model's name has {len(name)} characters, which exceeds the hub's {MOST_HUB_NAME}"
        yield document.problem(("model", "hub_id"), "SEA107", message, "as in meta-llama/Llama-2-7b-chat-hf")
    if name.endswith(".git"):
        yield document.problem(("model", "hub_id"), "SEA107", "the hub's names don't end in .git", "leave it out")


def _licence(document: Document) -> Iterator[Problem]:
    model_id, uri = document.value("model", "jumpstart_id"), document.value("model", "s3_uri")
    gated = isinstance(uri, str) and uri.startswith(jumpstart.GATED)
    if document.value("model", "accept_eula") is True or (model_id is None and not gated):
        return
    found = jumpstart.find(str(model_id))
    url = found.eula_url(jumpstart.HOME) if found else None
    message = f"the licence of {model_id or uri} has not been accepted"
    hint = f"read it{f' ({url})' if url else ''}, then write `accept_eula: true`"
    yield document.problem(("model",), "SEA112", message, hint)


def _architecture(document: Document) -> Iterator[Problem]:
    given = _given(document, "model", ("architecture", "config_file", "shape"))
    if len(given) > 1:
        message = f"{' and '.join(given)} exclude each other"
        yield document.problem(("model", given[1]), "SEA108", message, "keep the one that describes the model")


def _traffic(document: Document) -> Iterator[Problem]:
    if not isinstance(document.value("workload"), dict):
        return
    given = _given(document, "workload", ("concurrency", "requests_per_second"))
    if not given:
        hint = "give concurrency or requests_per_second"
        yield document.problem(("workload",), "SEA106", "the workload has no traffic", hint)
    if len(given) > 1:
        message = "concurrency and requests_per_second exclude each other"
        hint = "keep one; the other follows by Little's law"
        yield document.problem(("workload", "requests_per_second"), "SEA108", message, hint)


def _copies(document: Document) -> Iterator[Problem]:
    low, high = document.value("scaling", "min_copies"), document.value("scaling", "max_copies")
    low, high = 1 if low is None else low, 1 if high is None else high
    if isinstance(low, int) and isinstance(high, int) and low > high:
        message = f"min_copies {low} exceeds max_copies {high}"
        path = ("scaling", "min_copies")
        yield document.problem(path, "SEA108", message, f"set max_copies to at least {low}")


def _trial(document: Document) -> Iterator[Problem]:
    least, most = (document.value("trial", f"{name}requests_per_concurrency") for name in ("", "max_"))
    if isinstance(least, int) and isinstance(most, int) and least > most:
        message = f"requests_per_concurrency {least} exceeds max_requests_per_concurrency {most}"
        path = ("trial", "max_requests_per_concurrency")
        yield document.problem(path, "SEA108", message, f"set it to at least {least}")
    prefix, prompt = document.value("trial", "shared_prefix_tokens"), document.value("workload", "input_tokens")
    if isinstance(prefix, int) and isinstance(prompt, int) and prefix >= prompt:
        message = f"shared_prefix_tokens {prefix} leaves nothing of prompts of {prompt} tokens"
        yield document.problem(("trial", "shared_prefix_tokens"), "SEA108", message, f"set it below {prompt}")


_LONGEST = (("workload", "max_model_len"), ("serving", "overrides", "max_model_len"))


def _context(document: Document) -> Iterator[Problem]:
    lengths = [document.value("workload", name) for name in ("input_tokens", "output_tokens")]
    given = [(path, value) for path in _LONGEST if isinstance(value := document.value(*path), int)]
    if len({value for _, value in given}) > 1:
        message = f"workload.max_model_len is {given[0][1]}, and serving.overrides.max_model_len {given[1][1]}"
        yield document.problem(_LONGEST[1], "SEA120", message, "keep workload.max_model_len alone")
    numbers = [value for value in lengths if isinstance(value, int)]
    for path, longest in given:
        if len(numbers) == len(lengths) and sum(numbers) > longest:
            message = f"max_model_len {longest} is below the workload's {numbers[0]} + {numbers[1]} tokens"
            yield document.problem(path, "SEA108", message, f"set it to at least {sum(numbers)}")


def _files(document: Document) -> Iterator[Problem]:
    for field in ("config_file", "jumpstart_metadata"):
        name = document.value("model", field)
        path = Path(document.path).parent / name if isinstance(name, str) else None
        if path is not None and not (path.is_file() or (field == "jumpstart_metadata" and path.is_dir())):
            message = f"the file {name} does not exist"
            yield document.problem(("model", field), "SEA101", message, "the path is relative to the spec")


_RULES: tuple[Callable[[Document], Iterator[Problem]], ...] = (
    _model_source,
    _model_details,
    _hub_id,
    _licence,
    _architecture,
    shape_problems,
    _traffic,
    _copies,
    _trial,
    _context,
    speculation_problems,
    _files,
)
