"""The way back of a resource whose own update failed: with `raised_alarms_end_updates` it is sent its old properties.

MiniStack leaves it as it is, since the type's handler changed nothing. That CloudFormation sends them, and that a
raised alarm then ends this update too, is assumed. Done through a name that is not MiniStack's interface;
`tests/laptop` holds the contract on it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ministack.services.cloudformation import stacks

if TYPE_CHECKING:
    from seatrial_laptop.aws.faults import Faults

SENT_BACK: Final = "AWS::SageMaker::InferenceComponent"


def send_back_failed_updates(faults: Faults) -> None:
    """Let the rollback of a stack update the component whose update failed, where the switch is on."""
    theirs = stacks._sends_back_failed_update  # noqa: SLF001 (the contract)

    def sends_back(resource_type: str) -> bool:
        ours = resource_type == SENT_BACK and faults.settings().raised_alarms_end_updates
        return ours or bool(theirs(resource_type))

    stacks._sends_back_failed_update = sends_back  # noqa: SLF001 (the contract)
