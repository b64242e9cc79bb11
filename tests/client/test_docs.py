"""docs/how-to/client.md, run as it stands, and its table against the facts."""

from __future__ import annotations

import doctest
import re
from pathlib import Path
from typing import TYPE_CHECKING

from seatrial_load.payload.schema import FACTS

if TYPE_CHECKING:
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
