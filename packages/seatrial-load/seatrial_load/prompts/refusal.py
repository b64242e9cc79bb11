"""How long an endpoint counted a prompt that it refused for its length, read from its own words."""

from __future__ import annotations

import re
from typing import Final

_COUNTS: Final = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"\((\d+) in the (?:prompt|messages)",  # vLLM up to 0.10, and LMI in front of it
        r"(\d+) tokens from the input messages",  # SGLang
        r"(?:has|passed|contains at least) (\d+) input tokens",  # vLLM from 0.10 on
        r"Given: (\d+) `inputs` tokens",  # TGI, prompt and answer together
        r"must have less than \d+ tokens. Given: (\d+)",  # TGI, the prompt alone
        r"prompt \((?:total )?length:? (\d+)\)",  # vLLM's engine
        r"(?:the )?input \((\d+) tokens\) is longer",  # SGLang
        r"(?:prompt|input) length[^\d]{0,20}(\d+)[^\d]{1,40}(?:exceed|longer|greater)",  # TensorRT-LLM
    )
)
_OF_LENGTH: Final = re.compile(
    r"maximum context length|max_model_len|maximum model length|context length|too many tokens|`inputs` tokens"
    r"|longer than the (?:maximum|model)|must have less than \d+ tokens|(?:prompt|input) length .*exceed",
    re.IGNORECASE,
)


def told_prompt_tokens(refusal: str) -> int | None:
    """Return the tokens that a refusal says the prompt has; None where it names none."""
    found = (pattern.search(refusal) for pattern in _COUNTS)
    return next((int(match[1]) for match in found if match is not None), None)


def speaks_of_length(refusal: str) -> bool:
    """Tell whether a request was refused because its prompt, or the prompt with its answer, is too long."""
    return told_prompt_tokens(refusal) is not None or _OF_LENGTH.search(refusal) is not None
