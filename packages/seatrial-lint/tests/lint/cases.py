"""What the tables of the lint's tests share."""

from __future__ import annotations

from dataclasses import dataclass, field

from seatrial_lint.lint.lint import Given, LintReport, lint_sources
from seatrial_lint.lint.read import read_content

BASE = "option.model_id=org/model\noption.revision=abc\noption.max_rolling_batch_size=64\n"
TGI = "HF_MODEL_ID=org/model\nHF_MODEL_REVISION=abc\nSM_NUM_GPUS=1\n"
LMI = "HF_MODEL_ID=org/model\nHF_REVISION=abc\nOPTION_MAX_ROLLING_BATCH_SIZE=64\n"
VLLM = "SM_VLLM_MODEL=org/model\nSM_VLLM_REVISION=abc\nSM_VLLM_TENSOR_PARALLEL_SIZE=1\n"


@dataclass(frozen=True)
class Case:
    """One row: a text, and where one rule finds what, as `line: key: severity`; empty when the text passes."""

    rule: str
    text: str
    place: str
    name: str = "serving.properties"
    given: Given = field(default_factory=Given)

    def __str__(self) -> str:
        return f"{self.rule}-{'fails' if self.place else 'passes'}-{self.text.splitlines()[-1][:40]}"

    def says(self) -> list[str]:
        """Return the whole of what the rule says, as `line: key: severity: message | fix`."""
        return said(self.rule, self.text, name=self.name, given=self.given)

    def found(self) -> list[str]:
        """Return where the rule finds what, as `line: key: severity`."""
        whole = linted(self.text, name=self.name, given=self.given).findings
        keyed = ((one, f"{one.field}: " if one.field else "") for one in whole if one.rule == self.rule)
        return [f"{one.place.line}: {key}{one.severity}" for one, key in keyed]


def linted(text: str, *, name: str = "serving.properties", given: Given | None = None) -> LintReport:
    return lint_sources(read_content(text.encode(), name), given)


def said(rule: str, text: str, *, name: str = "serving.properties", given: Given | None = None) -> list[str]:
    """Return what one rule says, as `line: key: severity: message | fix`."""
    found = [one for one in linted(text, name=name, given=given).findings if one.rule == rule]
    return [
        f"{one.place.line}: {f'{one.field}: ' if one.field else ''}{one.severity}: {one.message} | {one.hint}"
        for one in found
    ]
