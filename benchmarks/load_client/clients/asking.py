"""What every client asks, and the credentials it signs with (examples of AWS's documentation: nobody checks them)."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass

REGION = "us-east-1"
ACCESS_KEY_ID = "AKIDEXAMPLE"
SECRET_ACCESS_KEY = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"  # noqa: S105 (AWS's documented example)
SESSION_TOKEN = "T" * 400
PATH = "/endpoints/e/invocations-response-stream"
BODY = json.dumps(
    {
        "messages": [{"role": "user", "content": "word " * 256}],
        "max_tokens": 64,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
).encode()
CA = os.environ.get("AWS_CA_BUNDLE", "")


@dataclass(frozen=True, slots=True)
class Order:
    """What this run shall do: `STREAMS REQUESTS [workers]`."""

    streams: int
    requests: int
    workers: int

    @classmethod
    def given(cls) -> Order:
        """Read the command line."""
        streams, requests, *rest = (int(word) for word in sys.argv[1:])
        return cls(streams, requests, rest[0] if rest else 1)
