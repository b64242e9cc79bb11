"""What several files, or a file and the environment, make together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial_lint.lint.redaction import shown
from seatrial_lint.lint.rules import finding
from seatrial_lint.lint.subject import hub_id

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from seatrial_base.findings import Finding
    from seatrial_lint.lint.subject import Subject


_WEIGHTS = ("s3_uri", "model_data_url", "artifact_url")


def _place_of_weights(subject: Subject, beside: Sequence[Subject]) -> str:
    """Return the file or address of the model that is packaged or mounted; empty without one."""
    files = (other.source.file for other in beside)
    uris = (subject.facts[name].value for name in _WEIGHTS if name in subject.facts)
    return next(files, None) or next(uris, "")


def two_models(subject: Subject, beside: Sequence[Subject]) -> Iterator[Finding]:
    """SEA335: a hub id in the environment beside a packaged model loads two models."""
    target = subject.target
    written = next((entry for entry in subject.source.entries if entry.key == "HF_MODEL_ID"), None)
    if target is None or target.engine != "lmi" or written is None or not hub_id(written.value):
        return
    if place := _place_of_weights(subject, beside):
        message = f"LMI loads {written.value} as a second model besides the one in {place}"
        fix = "leave HF_MODEL_ID out and write option.model_id in serving.properties, or package no model"
        yield finding(subject, "SEA335", written, message, fix)


def overruled(subject: Subject, beside: Sequence[Subject]) -> Iterator[Finding]:
    """SEA343: an environment variable that the packaged file overrules."""
    if subject.target is None or subject.target.engine != "lmi" or subject.source.kind == "serving.properties":
        return
    for other in beside:
        for option in subject.options:
            same = other.option(option.name, option.space)
            if same and same.value != option.value and option.name != "model_id":
                message = (
                    f"{other.source.file} has {shown(same.entry)} on line {same.entry.line}, which takes precedence"
                )
                yield finding(subject, "SEA343", option.entry, message, "keep one of them")


def is_packaged(subject: Subject) -> bool:
    """Say whether LMI would find a file beside the model: it reads that one name only. The checks get these alone."""
    return subject.source.file.rpartition("/")[2] == "serving.properties"
