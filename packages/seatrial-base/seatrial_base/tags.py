"""The tags that Seatrial writes and reads, and the name and tags of a trial's candidate component.

By tags, rights and reports tell resources apart. A name decides nothing: `hr-candidate-ranker` is a good name of an
endpoint that serves people. The trial service tags what it makes with its endpoint and its request; IAM compares these
tags before each deletion, and so does the code.
"""

from __future__ import annotations

import re
from hashlib import sha256
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping


# On everything of an environment; its value is the environment's name.
ENVIRONMENT_TAG: Final = "seatrial:environment"
# On a model: the digest of what its container reads, so that no one needs to read its environment to compare it.
CONFIG_TAG: Final = "seatrial:config"
# On what the trial service makes and may delete again. Nothing else sets it: a spec may give no tag of `seatrial:`.
OWNER_TAG: Final = "seatrial:owner"
# The value of `OWNER_TAG`.
TRIAL_SERVICE: Final = "trial-service"
# On a candidate: the endpoint that it is tried on.
ENDPOINT_TAG: Final = "seatrial:endpoint"
# On a candidate: the request that it is tried for.
RUN_TAG: Final = "seatrial:run"
# On what was made from a product.
PRODUCT_TAG: Final = "seatrial:product"
PRODUCT_VERSION_TAG: Final = "seatrial:product-version"
# The team in reports.
TEAM_TAG: Final = "team"
COST_CENTER_TAG: Final = "cost-center"
# CloudFormation puts it on what it creates.
STACK_TAG: Final = "aws:cloudformation:stack-name"


CANDIDATE: Final = "-candidate-"
# Characters that SageMaker takes in the name of a component.
LONGEST_NAME: Final = 63
_DIGITS: Final = 8
_STEM: Final = LONGEST_NAME - len(CANDIDATE) - _DIGITS
_NAME: Final = re.compile(rf".*{CANDIDATE}[0-9a-f]{{{_DIGITS}}}", re.DOTALL)
_RESERVED: Final = re.compile(rf"(.*-)?{CANDIDATE.lstrip('-')}[0-9a-f]{{{_DIGITS}}}", re.DOTALL)

# Who made a component: the trial service; a release before its tags, unless a stack has it; anything else; or no tag
# can be seen yet.
Maker = Literal["trial service", "older release", "other", "unknown"]


def candidate_name(endpoint_name: str, request_id: str) -> str:
    """Return the name of the candidate that a request is tried with; the same request has one name.

    The end of a name that is cut is a digest of the whole: two long names with one beginning share no candidate.
    """
    return f"{_stem(endpoint_name)}{CANDIDATE}{_digest(request_id)}"


def is_candidate_name(name: str) -> bool:
    """Return whether a component has the form of a candidate's name, which proves nothing."""
    return _NAME.fullmatch(name) is not None


def is_candidate_name_of(name: str, endpoint_name: str) -> bool:
    """Return whether a component's name is that of a candidate of this endpoint, of this release or an older one."""
    return is_candidate_name(name) and name[: -len(CANDIDATE) - _DIGITS] in (
        _stem(endpoint_name),
        endpoint_name[:_STEM],
    )


def is_reserved_name(name: str) -> bool:
    """Return whether a name of an endpoint, guest or adapter could give its component a candidate's name."""
    return _RESERVED.fullmatch(name) is not None


def candidate_tags(environment: str, endpoint_name: str, request_id: str) -> dict[str, str]:
    """Return the tags that a candidate is created with."""
    return {
        ENVIRONMENT_TAG: environment,
        OWNER_TAG: TRIAL_SERVICE,
        ENDPOINT_TAG: endpoint_name,
        RUN_TAG: request_id,
    }


def maker_of(name: str, endpoint_name: str, tags: Mapping[str, str]) -> Maker:
    """Tell who made a component.

    `tags`: its tags; a resource shows none for some time after it was created.
    """
    if not is_candidate_name(name):
        return "other"
    if not tags:
        return "unknown"
    environment, request_id = tags.get(ENVIRONMENT_TAG, ""), tags.get(RUN_TAG, "")
    if OWNER_TAG in tags:
        is_whole = name == candidate_name(endpoint_name, request_id)
        ours = candidate_tags(environment, endpoint_name, request_id)
        return "trial service" if is_whole and ours.items() <= tags.items() else "other"
    # A release before these tags gave the environment's alone, and cut a long name without a digest.
    is_whole = is_candidate_name_of(name, endpoint_name)
    return "older release" if is_whole and endpoint_name.startswith(f"{environment}-") else "other"


def _stem(endpoint_name: str) -> str:
    if len(endpoint_name) <= _STEM:
        return endpoint_name
    return f"{endpoint_name[: _STEM - _DIGITS - 1]}-{_digest(endpoint_name)}"


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:_DIGITS]
