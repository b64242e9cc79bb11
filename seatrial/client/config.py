"""How boto3 shall connect and retry."""

from __future__ import annotations

from botocore.config import Config

TOTAL_ATTEMPTS = 20
CONNECT_TIMEOUT_S = 10.0
READ_TIMEOUT_S = 70.0


def client_config(*, concurrency: int = 10, read_timeout_s: float = READ_TIMEOUT_S) -> Config:
    """Return a configuration for `boto3.client("sagemaker-runtime", config=…)`.

    Retries are botocore's standard mode with 20 attempts in all, as AWS's articles on LLM endpoints have it. That mode
    repeats throttling, 5xx answers, timeouts and broken connections, with growing random pauses, and only while the
    client's quota of retries lasts. A container that is full answers `ModelError` (424), which it doesn't repeat.

    Args:
        concurrency: Requests in flight at once: so many connections are kept open (botocore's own default is 10).
        read_timeout_s: The longest silence. SageMaker gives a model 60 s for a whole answer (so stay above that), and
            a stream 8 minutes in all.
    """
    return Config(
        retries={"mode": "standard", "total_max_attempts": TOTAL_ATTEMPTS},
        connect_timeout=CONNECT_TIMEOUT_S,
        read_timeout=read_timeout_s,
        max_pool_connections=concurrency,
        tcp_keepalive=True,
    )
