"""docs/how-to/client.md, run as it stands, and its table against the facts."""

from __future__ import annotations

import doctest
import re
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from seatrial.client import InvocationError
from seatrial_load.decode.failure import Failure
from seatrial_load.payload.schema import FACTS

if TYPE_CHECKING:
    from collections.abc import Callable

    from mypy_boto3_sagemaker_runtime import SageMakerRuntimeClient

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "client.md"
TEXT = PAGE.read_text(encoding="utf-8")


def test_the_examples_run_as_they_stand(runtime: SageMakerRuntimeClient) -> None:
    blocks = "\n".join(re.findall(r"^```python\n(.*?)^```$", TEXT, re.DOTALL | re.MULTILINE))
    examples = doctest.DocTestParser().get_doctest(blocks, {}, "client.md", str(PAGE), 0)
    assert len(examples.examples) >= 20
    report: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    assert runner.run(examples, out=report.append).failed == 0, "".join(report)


def test_the_table_of_schemas_has_the_facts() -> None:
    for schema, facts in FACTS.items():
        default = "by version" if facts.default_output_tokens is None else facts.default_output_tokens
        keys = " | ".join(f"`{key}`" for key in (schema, facts.body_key, facts.max_tokens_key, facts.stop_key))
        told = f"{facts.whole_reason} | {facts.stream_count} | {facts.log_probabilities}"
        assert f"| {keys} | {default} | {told} |" in TEXT


def test_the_retry_of_the_page_waits_at_random_longer_and_longer_and_repeats_refusals_alone() -> None:
    (code,) = re.findall(r"^>>> import random, time\n(.*?)^>>> with_patience", TEXT, re.DOTALL | re.MULTILINE)
    waits_s: list[float] = []
    clock = SimpleNamespace(sleep=waits_s.append)
    chance = SimpleNamespace(uniform=lambda low, high: low + high)
    given = {"random": chance, "time": clock, "InvocationError": InvocationError}
    exec(re.sub(r"^(>>>|\.\.\.) ?", "", code, flags=re.MULTILINE), given)  # noqa: S102 (the page's own snippet)

    def ask(*failures: Failure) -> Callable[[], str]:
        left = list(failures)

        def asked() -> str:
            if left:
                raise InvocationError.because(left.pop(0), where="chat")
            return "ahoy"

        return asked

    full = Failure("throttled", "HTTP 424 ModelError: full")
    assert given["with_patience"](ask(full, full, full)) == "ahoy"  # type: ignore[operator]
    assert waits_s == [0.25, 0.5, 1.0]
    for failures, most in (((full,) * 9, 4), ((Failure("validation", "too long"),), 0)):
        waits_s.clear()
        with pytest.raises(InvocationError):
            given["with_patience"](ask(*failures))  # type: ignore[operator]
        assert len(waits_s) == most
