"""A file of prompts of exact lengths, one JSON object a line, for `workload.source: jsonl`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from seatrial.workload.exact import exact_text
from seatrial_base.files import whole_file

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from seatrial.workload.tokenizer import TokenCount


def write_prompts(path: Path, count: TokenCount, lengths: Iterable[tuple[int, int]], *, seed: str) -> int:
    """Write one prompt for each pair of input and output tokens; return how many there are.

    The file is complete or not there: it is written beside its place first.

    Args:
        path: The file.
        count: Counts a text's tokens.
        lengths: Tokens of each prompt and of its answer; a trace's rows, or equal ones.
        seed: Another seed gives prompts that share nothing with these.

    Raises:
        BenchError: SEA509, a length that no text has.
    """
    written = 0
    with whole_file(path) as file:
        for index, (tokens_in, tokens_out) in enumerate(lengths):
            text = exact_text(count, tokens_in, f"{seed}:{index}")
            file.write(json.dumps({"prompt": text, "output_tokens": tokens_out}) + "\n")
            written += 1
    return written
