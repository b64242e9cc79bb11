from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from seatrial_cdk.managed_benchmark.workload_spec import digest_name, name_prefix

if TYPE_CHECKING:
    from seatrial_cdk.managed_benchmark.workload_spec import ManagedWorkload

AI_ENTITY_NAME = r"[a-zA-Z0-9](-*[a-zA-Z0-9]){0,62}"  # botocore's model of SageMaker, AIEntityName


def test_a_workload_is_written_in_the_tools_words(workload: ManagedWorkload) -> None:
    assert workload.to_inline() == (
        '{"benchmark":{"type":"aiperf"},"parameters":{"concurrency":[1,8,16],"output_tokens_mean":256,'
        '"prompt_input_tokens_mean":256,"random_seed":0,"request_count":48,"streaming":true,'
        '"tokenizer":"meta-llama/Llama-2-7b-chat-hf"}}'
    )


def test_a_name_follows_from_its_parts() -> None:
    assert digest_name("dev-chat", "plan", "spec") == digest_name("dev-chat", "plan", "spec")
    assert digest_name("dev-chat", "plan", "spec") != digest_name("dev-chat", "plan", "other spec")
    assert digest_name("dev-chat", "plan").startswith("dev-chat-")


@given(prefix=st.from_regex(r"[a-zA-Z0-9](-*[a-zA-Z0-9]){0,62}", fullmatch=True), part=st.text())
def test_every_endpoints_name_makes_a_jobs_name(prefix: str, part: str) -> None:
    name = digest_name(prefix, part)
    assert re.fullmatch(AI_ENTITY_NAME, name)
    assert len(name) <= 63
    assert name.startswith(name_prefix(prefix))
