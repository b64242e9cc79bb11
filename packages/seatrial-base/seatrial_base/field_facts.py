"""What is known of one field of a document, on the field itself: digests and documents are read off it.

A pydantic model says it where it says the default (`frozen_model.model_field`), a required field with its type:

    turns: int = model_field(1, "Mean number of turns of a conversation.", since="0.2")
    because: Annotated[str, Facts(explains=True)]
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Facts of a field; the defaults are those of a field that was there from the beginning.

    Attributes:
        since: Release that added the field to a document that was written before, as `0.2`. Where it has its default,
            documents and digests leave it out: so they stay what earlier releases wrote, and no lock is stale.
        neutral: A value that counts as the default does.
        planned: Whether a plan is made for it. What is only deployed is in no digest, and plans nothing anew; of a
            `presence` only whether there is one counts.
        explains: Whether it only explains what other fields decide: it is in no digest of a plan.
    """

    since: str | None = None
    neutral: object = None
    planned: bool | Literal["presence"] = True
    explains: bool = False

    def leave_out(self, value: object, default: object) -> bool:
        """Tell whether a value is written nowhere, since earlier releases had no such field."""
        return self.since is not None and (value == default or (self.neutral is not None and value == self.neutral))
