"""The workload of a managed benchmark, in the words of its tool.

The keys are those of the Amazon SageMaker AI developer guide (read 2026-11-21): its chapters on workload configurations
for generative AI inference recommendations and on the maximum concurrency under an SLA. The API takes the specification
as one text and no service model describes it: no test of ours can prove it.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

LONGEST_NAME = 63
DIGEST_CHARACTERS = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class ManagedWorkload:
    """What the managed benchmark sends.

    Attributes:
        input_tokens: Mean length of a prompt.
        output_tokens: Mean length of an answer.
        concurrency_levels: Requests in flight, all copies together; the job measures one after the other.
        requests_per_level: Requests of each level.
        tokenizer: The tokenizer that counts, by its name on the Hugging Face Hub.
        seed: Of the made-up prompts.
    """

    input_tokens: int
    output_tokens: int
    concurrency_levels: Sequence[int]
    requests_per_level: int
    tokenizer: str
    seed: int = 0

    def to_inline(self) -> str:
        """Return the specification as JSON; equal workloads give equal bytes."""
        parameters = {
            "concurrency": list(self.concurrency_levels),
            "output_tokens_mean": self.output_tokens,
            "prompt_input_tokens_mean": self.input_tokens,
            "random_seed": self.seed,
            "request_count": self.requests_per_level,
            "streaming": True,
            "tokenizer": self.tokenizer,
        }
        return json.dumps({"benchmark": {"type": "aiperf"}, "parameters": parameters}, separators=(",", ":"))


def digest_name(prefix: str, *parts: str) -> str:
    """Return a name that follows from its parts: letters, digits and single hyphens, 63 at most.

    Equal parts give the equal name, so that a repeated request finds what the first one made.
    """
    digest = hashlib.sha256("\n".join(parts).encode()).hexdigest()[:DIGEST_CHARACTERS]
    return f"{name_prefix(prefix)}{digest}"


def name_prefix(prefix: str) -> str:
    """Return what all names of `digest_name` with this prefix begin with, hyphen included."""
    readable = re.sub(r"[^A-Za-z0-9]+", "-", prefix).strip("-")
    return f"{readable[: LONGEST_NAME - DIGEST_CHARACTERS - 1].rstrip('-')}-"
