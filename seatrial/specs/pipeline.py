"""The spec of a pipeline: where AWS CodePipeline runs, and which repository it deploys."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, StringConstraints

from seatrial.specs import shapes
from seatrial.specs.environment import Account, Region
from seatrial_base.frozen_model import FrozenModel

PipelineName = Annotated[str, StringConstraints(pattern=shapes.PIPELINE_NAME, max_length=100)]


class PipelineSpec(FrozenModel):
    """One pipeline in AWS CodePipeline: it deploys every environment, each after its source."""

    name: PipelineName = Field(description="Name of the pipeline.")
    account: Account = Field(description="AWS account that the pipeline runs in.")
    region: Region = Field(description="AWS region that the pipeline runs in.")
    connection_arn: Annotated[str, StringConstraints(pattern=shapes.CONNECTION_ARN)] = Field(
        description="CodeConnections connection to the host of the repository."
    )
    repository: Annotated[str, StringConstraints(pattern=shapes.REPOSITORY)] = Field(
        description="Repository on its host, as OWNER/NAME."
    )
    branch: Annotated[str, StringConstraints(pattern=shapes.REVISION)] = Field(
        "main", description="Branch whose commits are deployed."
    )
