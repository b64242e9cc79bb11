"""Endpoints of an environment that no spec knows."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from seatrial.account.response import rows, text_at
from seatrial.operations.drift.report import drift_finding
from seatrial_base.tags import ENVIRONMENT_TAG, PRODUCT_TAG

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from seatrial.operations.drift.live import LiveEndpoints
    from seatrial_base.findings import Finding

_RULE = "SEA433"


def unknown_endpoints(
    environment: str, known: Collection[str], current: Collection[str], live: LiveEndpoints
) -> Iterator[Finding]:
    """Yield each endpoint whose name begins with the environment's, or that has its tag, and that is not expected.

    Args:
        environment: The environment's name.
        known: The first generation's names of every spec's endpoint.
        current: The names of the endpoints that the locks deploy.
        live: A client of SageMaker in the environment's region.

    Raises:
        ClientError: SageMaker refuses.
    """
    for name, arn in sorted(_listed(live)):
        if name in current or not name.startswith(f"{environment}-"):
            continue
        tags = _tags_of(arn, live)
        if PRODUCT_TAG in tags:
            continue  # a product's stack made it, and no spec
        tagged = tags.get(ENVIRONMENT_TAG) == environment
        base = re.sub(r"-\d{1,3}$", "", name)
        if base in known or name in known:
            hint = "deploy the lock: CloudFormation deletes what it replaces; else delete it"
            what = "endpoint of another generation than the locked one"
        else:
            hint = "add its spec, or delete it (its stack, where it has one)"
            what = "endpoint without a spec" if tagged else "endpoint with this environment's prefix, without its tag"
        yield drift_finding(rule=_RULE, severity="warning" if tagged else "note", what=what, live=name, hint=hint)


def _listed(live: LiveEndpoints) -> Iterator[tuple[str, str]]:
    token = ""
    while True:
        page = live.list_endpoints(**({"NextToken": token} if token else {}))
        for row in rows(page, "Endpoints"):
            yield text_at(row, "EndpointName"), text_at(row, "EndpointArn")
        token = text_at(page, "NextToken")
        if not token:
            return


def _tags_of(arn: str, live: LiveEndpoints) -> dict[str, str]:
    return {text_at(row, "Key"): text_at(row, "Value") for row in rows(live.list_tags(ResourceArn=arn), "Tags")}
