"""Differences of two sides of an endpoint: fields of specs, files of the container, and new findings."""

from __future__ import annotations

import difflib
import json
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

from seatrial.deployment.evidence import age_problem, fingerprint, is_proof_needed
from seatrial.engines.rendered import rendered_files
from seatrial.locks.changes import compiled_anew
from seatrial.locks.guard_rails import waiver_findings
from seatrial.locks.locked_plan import provenance_lines
from seatrial.specs.guardrails.checks import loaded_things
from seatrial.specs.prices import region_document
from seatrial_base.findings import Finding, Place
from seatrial_base.frozen_model import digest
from seatrial_lint.lint.lint import Given, lint_sources
from seatrial_lint.lint.read import read_content
from seatrial_lint.lint.source import ConfigSource, SourceEntry

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from seatrial.operations.review.side import EndpointState
    from seatrial.specs.environment import EnvironmentSpec
    from seatrial.specs.guardrails.limits import Waiver
    from seatrial.specs.load import LoadedSpec

CONTEXT_LINES = 1
_LEAST = ("trial.confidence", "trial.requests_per_concurrency", "slo.output_tok_s")
"""The guard rails whose number is the least that is allowed; every other number is the most."""
_STRICT = {
    "rollback": 3,
    "refused": 2,
    "report": 2,
    "fail": 2,
    "pinned": 1,
    "warn": 1,
    "account": 1,
    "manual": 1,
    "true": 1,
}
"""How much a word of a guard rail asks; any other word, or none, asks nothing."""
PROPERTIES, ENVIRONMENT = "serving.properties", "container.env"
"""The files that hold a container's options; the first of them that there is holds all of them."""


@dataclass(frozen=True, slots=True)
class FieldChange:
    """A field of a spec, or a file that it reads, that differs.

    Attributes:
        field: Its path; that of a field of the environment's file begins with `environment.`.
        old: The value before as JSON; `None` where it was left out.
        new: The value after as JSON; `None` where it is left out.
    """

    field: str
    old: str | None
    new: str | None


@dataclass(frozen=True, slots=True)
class FileChange:
    """A file that the container reads, or its environment, that differs; in unified form, without the files' names."""

    name: str
    lines: tuple[str, ...]


def field_changes(old: LoadedSpec | None, new: LoadedSpec | None) -> tuple[FieldChange, ...]:
    """Return the fields of the merged documents that differ; none where one side has no right spec."""
    if old is None or new is None:
        return ()
    return differing_fields(dict(_fields(old)), dict(_fields(new)))


def differing_fields(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[FieldChange, ...]:
    """Return the fields whose values differ, by name."""
    names = sorted(before.keys() | after.keys())
    return tuple(
        FieldChange(name, before.get(name), after.get(name)) for name in names if before.get(name) != after.get(name)
    )


def licence_changes(old: LoadedSpec | None, new: LoadedSpec | None) -> tuple[FieldChange, ...]:
    """Return the licences of models and drafts that differ, each as text; all of what is new."""
    before, after = (dict(_licences(side)) if side is not None else {} for side in (old, new))
    return tuple(change for change in differing_fields(before, after) if change.new is not None)


def _licences(loaded: LoadedSpec) -> Iterator[tuple[str, str]]:
    for each in loaded_things(loaded.endpoint, loaded.environment.region, loaded.path.parent):
        if each.kind in {"model", "draft"}:
            # The field names of a model differ by its source: a model that moves to S3 keeps its licence.
            yield "model" if each.kind == "model" else ".".join(map(str, each.path)), each.licence or "unknown"


def loosened_rails(old: EnvironmentSpec, new: EnvironmentSpec) -> tuple[FieldChange, ...]:
    """Return what an environment asked of its endpoints and asks no more, or less of."""
    before, after = (dict(_asked(each)) for each in (old, new))
    rails = (
        change
        for change in differing_fields(before, after)
        if _is_looser(change.field, json.loads(change.old or "null"), json.loads(change.new or "null"))
    )
    return (*rails, *_new_waivers(old.guard_rails.waivers, new.guard_rails.waivers))


def _new_waivers(old: Sequence[Waiver], new: Sequence[Waiver]) -> Iterator[FieldChange]:
    """Yield waivers that allow more than one of before does, or have another reason or approver."""
    before = {(each.rail, each.endpoint): each for each in old}
    for each in new:
        same = {"rail": each.rail, "reason": each.reason, "approver": each.approver}
        if not any(
            same.items() <= dict(other).items()
            and other.expires >= each.expires
            and _has_all(other.endpoint, each.endpoint)
            for other in old
        ):
            texts = [
                json.dumps(f"{waiver.expires}: {waiver.reason} (approved by {waiver.approver})") if waiver else None
                for waiver in (before.get((each.rail, each.endpoint)), each)
            ]
            yield FieldChange(f"waivers.{each.rail} for {each.endpoint}", texts[0], texts[1])


def _has_all(pattern: str, other: str) -> bool:
    """Return whether a pattern has all that another has; `?` would have a `*` too, but not the texts of it."""
    return all(fnmatchcase(other.replace("*", text), pattern) for text in ("", "**"))


def _asked(environment: EnvironmentSpec) -> Iterator[tuple[str, str]]:
    rails, promotion = environment.guard_rails, environment.promotion
    listed = rails.models is not None or rails.licences is not None
    # What a rail is by default depends on others, and its removal is no change then.
    stated = {
        **rails.model_dump(mode="json"),
        "code": rails.code or ("refused" if listed else None),
        "images": [] if rails.images is None and rails.judges_what_is_loaded else rails.images,
        "trial": rails.required_trial.model_dump(mode="json"),
    }
    del stated["waivers"]
    yield from flat_fields("", stated)
    yield from flat_fields("promotion", promotion.model_dump(exclude={"source"}))
    # The hook takes them for rules, and none where there is none.
    network, key = environment.network, environment.kms_key_arn
    yield "network.isolated", json.dumps(network.isolated)
    yield "network.subnet_ids", json.dumps(network.subnet_ids or None)
    yield "network.security_group_ids", json.dumps(network.security_group_ids or None)
    yield "kms_key_arn", json.dumps([key] if key else None)
    yield "security.permissions_boundary", json.dumps(environment.security.permissions_boundary is not None)


def _is_looser(name: str, old: object, new: object) -> bool:
    if isinstance(old, list) or isinstance(new, list):
        if name == "required_tags":
            return isinstance(old, list) and not set(old) <= set(new if isinstance(new, list) else ())
        # A pattern is no looser where one of before has all that it has.
        patterns = [str(each) for each in old] if isinstance(old, list) else ["*"]
        added = [str(each) for each in new] if isinstance(new, list) else ["*"]
        return any(not any(_has_all(pattern, each) for pattern in patterns) for each in added)
    numbers = [each for each in (old, new) if isinstance(each, int | float) and not isinstance(each, bool)]
    if not numbers:
        words = [each if isinstance(each, str) else json.dumps(each) for each in (old, new)]
        if name == "promotion.accept_simulated":
            words.reverse()
        return _STRICT.get(words[0], 0) > _STRICT.get(words[1], 0)
    if old is None or new is None:
        return new is None
    return numbers[1] < numbers[0] if name in _LEAST else numbers[1] > numbers[0]


def _fields(loaded: LoadedSpec) -> Iterator[tuple[str, str]]:
    yield from flat_fields("", loaded.document.data)
    yield from flat_fields("environment", loaded.place.data)
    if loaded.config_file is not None:
        yield "content of model.config_file", json.dumps(loaded.config_file)
    # Thousands of lengths would fill the comment: their distribution and a digest show that, and how, they differ.
    if pairs := loaded.dataset.pairs:
        others = [part for part in (loaded.dataset.times_s, loaded.dataset.turns, loaded.dataset.delays_s) if part]
        content = json.dumps([pairs, *others] if others else pairs)
        summary = f"{loaded.lengths.words}, {len(pairs):,} requests, {digest(content)}"
        yield "content of workload.dataset", json.dumps(summary, ensure_ascii=False)
    if loaded.calibration is not None:
        yield from flat_fields("calibration", loaded.calibration)
    if loaded.prices is not None:
        yield from flat_fields("prices", region_document(loaded.prices, loaded.environment.region))


def flat_fields(path: str, value: object) -> Iterator[tuple[str, str]]:
    """Yield every value that is no mapping, with its path."""
    if isinstance(value, dict) and value:
        for name, one in value.items():
            yield from flat_fields(f"{path}.{name}".removeprefix("."), one)
    else:
        yield path, json.dumps(value, ensure_ascii=False, sort_keys=True)


def file_changes(old: EndpointState | None, new: EndpointState | None) -> tuple[FileChange, ...]:
    """Return the rendered files that differ; none where one side can't be rendered.

    A side that does not have the endpoint has no files.
    """
    before, after = _files(old), _files(new)
    if before is None or after is None:
        return ()
    return tuple(
        FileChange(name, tuple(_lines(before.get(name, ""), after.get(name, ""))))
        for name in sorted(before.keys() | after.keys())
        if before.get(name) != after.get(name)
    )


def _files(state: EndpointState | None) -> Mapping[str, str] | None:
    if state is None:
        return {}
    return None if state.deployment is None else rendered_files(state.deployment.serving)


def _lines(old: str, new: str) -> Iterator[str]:
    lines = difflib.unified_diff(old.splitlines(), new.splitlines(), lineterm="", n=CONTEXT_LINES)
    # The names of the files are the title of the part, and the same on both sides.
    yield from (line for line in lines if not line.startswith(("--- ", "+++ ", "---\n")))


def findings(
    old: EndpointState | None, new: EndpointState | None, now: datetime | None = None
) -> tuple[tuple[Finding, ...], tuple[Finding, ...]]:
    """Return the findings of the new side alone, and those that the old side has too; default: as of this moment."""
    now = now or datetime.now(UTC)
    # By rule and message, not by place: a line that moves is no new problem.
    before = {(one.rule, one.message) for one in _findings(old)}
    after = tuple(_findings(new))
    known = tuple(one for one in after if (one.rule, one.message) in before)
    plans = [side.plan.model_dump(mode="json") for side in (old, new) if side is not None and side.plan is not None]
    # Compiled artifacts of the old plan may be useless for the new one.
    compiled = map(_warning, compiled_anew(*plans)) if len(plans) == len((old, new)) else ()
    waivers = [
        () if side is None or side.loaded is None else waiver_findings(side.loaded, now.date(), side.plan)
        for side in (old, new)
    ]
    known += tuple(each for each in waivers[1] if each in waivers[0])
    after += tuple(each for each in waivers[1] if each not in waivers[0])
    own = (*(finding for finding in after if finding not in known), *compiled)
    promotion = () if new is None or new.loaded is None else _promotion(old, new, new.loaded, now)
    return (*own, *promotion), known


def _promotion(old: EndpointState | None, new: EndpointState, loaded: LoadedSpec, now: datetime) -> Iterator[Finding]:
    """Yield what is to be known of a change before it is approved: whose signatures count, and a new plan's trial.

    A promotion counts from its own time, which whoever writes the lock sets: here alone it is held against today.
    """
    before = () if old is None or old.loaded is None else old.loaded.environment.promotion.public_keys
    promoted, promotion = None if new.plan is None else new.plan.promoted, loaded.environment.promotion
    was = None if old is None or old.plan is None else old.plan.promoted
    is_new = promoted is not None and promoted != was
    for key in (key for key in promotion.public_keys if key not in before):
        both = "; the same change promotes a plan" if is_new else ""
        message = f"what the key sha256 {fingerprint(key)} signs counts as a trial in {promotion.source}{both}"
        hint = f"compare it with `seatrial keys -e {promotion.source}` before you approve"
        yield Finding(
            "SEA585", Place.at(Path(loaded.place.path).name, "promotion.public_keys"), message, hint, "warning"
        )
    if promoted is None or not is_new:
        return
    is_proven = is_proof_needed(loaded) and new.deployment is not None
    message = f"{provenance_lines(promoted)[0]}; {'' if is_proven else 'not '}proven by a signed result"
    yield Finding("", Place("plan"), message, severity="note")
    if is_proven and (problem := age_problem(datetime.fromisoformat(promoted.ended_at), now, loaded)):
        yield Finding("SEA474", Place("plan"), problem, "promote a newer trial", "warning")


def _findings(state: EndpointState | None) -> Iterator[Finding]:
    if state is None:
        return
    yield from state.problems
    if state.plan is not None:
        yield from map(_warning, state.plan.warnings)
    if state.deployment is not None:
        plan, serving = state.deployment.plan, state.deployment.serving
        given = Given(
            instance_type=plan.instance_type.value,
            ami_version=plan.inference_ami_version.value,
            startup_timeout_s=plan.startup_timeout_s.value,
        )
        files = rendered_files(serving)
        name = next((one for one in (PROPERTIES, ENVIRONMENT) if one in files), "")
        sources = [
            replace(source, facts={**source.facts, "image": SourceEntry("", serving.image, 1, "env")})
            for source in read_content(files.get(name, "").encode(), name)
            if isinstance(source, ConfigSource)
        ]
        yield from lint_sources(sources, given).findings


def _warning(message: str) -> Finding:
    return Finding("", Place("plan"), message, severity="warning")
