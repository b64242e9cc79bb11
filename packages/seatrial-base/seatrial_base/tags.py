"""The keys of the tags that Seatrial writes and reads: by these, rights and reports tell resources apart."""

from __future__ import annotations

from typing import Final

ENVIRONMENT_TAG: Final = "seatrial:environment"
"""On everything of an environment; its value is the environment's name."""
CONFIG_TAG: Final = "seatrial:config"
"""On a model: the digest of what its container reads, so that nobody needs to read its environment to compare it."""
OWNER_TAG: Final = "seatrial:owner"
"""On what the trial service makes and may delete again. Nothing else sets it: a spec may give no tag of `seatrial:`."""
TRIAL_SERVICE: Final = "trial-service"
"""The value of `OWNER_TAG`."""
ENDPOINT_TAG: Final = "seatrial:endpoint"
"""On a candidate: the endpoint that it is tried on."""
RUN_TAG: Final = "seatrial:run"
"""On a candidate: the request that it is tried for."""
PRODUCT_TAG: Final = "seatrial:product"
"""On what was made from a product."""
PRODUCT_VERSION_TAG: Final = "seatrial:product-version"
TEAM_TAG: Final = "team"
"""The team in reports."""
COST_CENTER_TAG: Final = "cost-center"
STACK_TAG: Final = "aws:cloudformation:stack-name"
"""CloudFormation puts it on what it creates."""
