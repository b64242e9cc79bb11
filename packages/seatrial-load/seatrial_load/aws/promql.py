"""CloudWatch's PromQL API: the one way to the metrics that SageMaker's detailed observability publishes.

Facts (Amazon CloudWatch user guide, "QueryMetrics" and "PromQL querying"; SageMaker developer guide, "Connect to your
observability tool"): `POST /api/v1/query_range` at `https://monitoring.REGION.amazonaws.com`, signed for the service
`monitoring`, with the form fields `query`, `start`, `end`, `step`; the answer is Prometheus' own. A query selects a
metric by its name; names with dots are quoted. Needs `cloudwatch:GetMetricData` and `cloudwatch:ListMetrics`.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import TYPE_CHECKING, Final, Protocol
from urllib.parse import urlencode, urlsplit

from seatrial_base.errors import BenchError
from seatrial_load.aws.authorities import trusted_authorities
from seatrial_load.aws.credentials import credential_source
from seatrial_load.aws.sigv4 import Signer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from seatrial_load.aws.credentials import CredentialSource


SERVICE: Final = "monitoring"
PATH: Final = "/api/v1/query_range"
TIMEOUT_S: Final = 10.0
FORM: Final = "application/x-www-form-urlencoded"


@dataclass(frozen=True, slots=True)
class MetricSeries:
    """One time series of an answer.

    Attributes:
        labels: By name; `__name__` is the metric's.
        samples: Time in seconds since the epoch and value, oldest first.
    """

    labels: Mapping[str, str]
    samples: tuple[tuple[float, float], ...]


class PromQl(Protocol):
    """Whoever answers a query over a stretch of time."""

    def __call__(self, query: str, *, start_s: float, end_s: float, step_s: float) -> tuple[MetricSeries, ...]:
        """Return the series that a query selects, a sample for each step that has one.

        Raises:
            OSError: There is no connection.
            ValueError: The query was refused, or the answer is none.
        """


def selector(metric: str, labels: Mapping[str, str]) -> str:
    """Return the query of one metric: `{"vllm:num_requests_waiting","aws.sagemaker.endpoint.name"="chat"}`."""
    named = (f"{json.dumps(name)}={json.dumps(value)}" for name, value in labels.items())
    return f"{{{','.join((json.dumps(metric), *named))}}}"


@dataclass(frozen=True, slots=True)
class CloudWatchPromQl:
    """CloudWatch's PromQL API in one region.

    Attributes:
        url: Where it is.
        region: The region.
        credentials: What signs.
        now: The time of day in UTC, which dates the signatures.
    """

    url: str
    region: str
    credentials: CredentialSource
    now: Callable[[], datetime]

    def __call__(self, query: str, *, start_s: float, end_s: float, step_s: float) -> tuple[MetricSeries, ...]:
        """Ask, as `PromQl` says."""
        asked = {"query": query, "start": f"{start_s:.3f}", "end": f"{end_s:.3f}", "step": f"{step_s:g}"}
        status, answer = self._post(urlencode(asked).encode())
        if status != HTTPStatus.OK:
            raise ValueError(f"HTTP {status}: {answer.decode(errors='replace')[:400]}")
        return tuple(_series(json.loads(answer)))

    def _post(self, body: bytes) -> tuple[int, bytes]:
        place = urlsplit(self.url)
        signer = Signer(self.credentials, self.region, SERVICE)
        headers = {"Host": place.netloc, "Content-Type": FORM}
        signed = signer.signed_headers(PATH, headers, sha256(body).hexdigest(), self.now())
        connection = (
            HTTPSConnection(place.netloc, timeout=TIMEOUT_S, context=trusted_authorities())
            if place.scheme == "https"
            else HTTPConnection(place.netloc, timeout=TIMEOUT_S)
        )
        try:
            connection.request("POST", PATH, body, signed)
            answer = connection.getresponse()
            return answer.status, answer.read()
        except HTTPException as broken:
            raise OSError(f"CloudWatch's answer is no HTTP: {broken!r}") from broken
        finally:
            connection.close()


def own_cloudwatch(environ: Mapping[str, str] = os.environ) -> str:
    """Return the address in place of AWS's that boto3 is told for CloudWatch; empty without one."""
    return environ.get("AWS_ENDPOINT_URL_CLOUDWATCH") or environ.get("AWS_ENDPOINT_URL") or ""


def promql_url(region: str, environ: Mapping[str, str] = os.environ) -> str:
    """Return where a region's PromQL API is."""
    suffix = ".cn" if region.startswith("cn-") else ""
    return own_cloudwatch(environ) or f"https://{SERVICE}.{region}.amazonaws.com{suffix}"


def cloudwatch_promql(
    region: str, credentials: CredentialSource | None = None, *, now: Callable[[], datetime] = lambda: datetime.now(UTC)
) -> CloudWatchPromQl | None:
    """Return a region's PromQL API; None where there are no credentials to sign with.

    Args:
        region: The region.
        credentials: What signs; the process's own when not given.
        now: The time of day in UTC.
    """
    try:
        source = credentials or credential_source()
    except BenchError:
        return None
    return CloudWatchPromQl(promql_url(region), region, source, now)


def _series(answer: object) -> Iterator[MetricSeries]:
    """Yield the series of an answer.

    Raises:
        ValueError: It isn't Prometheus' answer to a query over a stretch of time.
    """
    data = answer.get("data") if isinstance(answer, dict) else None
    found = data.get("result") if isinstance(data, dict) else None
    if not isinstance(found, list):
        raise ValueError("the answer has no `data.result`")  # noqa: TRY004 (what came over the wire is a value)
    for row in found:
        labels, values = (row.get("metric"), row.get("values")) if isinstance(row, dict) else (None, None)
        if not isinstance(labels, dict) or not isinstance(values, list):
            raise ValueError("a series of the answer has no `metric` or no `values`")  # noqa: TRY004 (likewise)
        samples = tuple((float(at), float(value)) for at, value in values)
        yield MetricSeries({str(name): str(value) for name, value in labels.items()}, samples)
