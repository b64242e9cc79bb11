"""The digest of what a plan and its trial are made from: a lock made from another digest is stale."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from seatrial.model import digest

if TYPE_CHECKING:
    from collections.abc import Mapping

    from seatrial.spec.endpoint import EndpointSpec
    from seatrial.spec.environment import EnvironmentSpec

# What neither the planner nor the trial reads: it is deployed as the spec says on the day, and re-plans nothing.
_ENDPOINT_ONLY_DEPLOYED: Mapping[str, set[str] | bool] = {
    "description": True,
    "model": {"accept_eula", "hub_token_secret"},
    "scaling": {"scale_out_cooldown_s", "scale_in_cooldown_s"},
}
_ENVIRONMENT_ONLY_DEPLOYED = {"account", "network", "kms_key_arn", "removal", "tags"}


def fingerprint(endpoint: EndpointSpec, environment: EnvironmentSpec) -> str:
    """Return the digest of everything that can change the plan or the trial.

    Of the hub token only whether there is one counts: the plan warns of it.
    """
    asked = {
        "endpoint": endpoint.model_dump(mode="json", exclude=_ENDPOINT_ONLY_DEPLOYED),
        "environment": environment.model_dump(mode="json", exclude=_ENVIRONMENT_ONLY_DEPLOYED),
        "has_hub_token": endpoint.model.hub_token_secret is not None,
    }
    return digest(json.dumps(asked, sort_keys=True, separators=(",", ":"), ensure_ascii=False))
