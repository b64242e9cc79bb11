"""Where a fleet's documents lie while it measures: what steps and workers tell each other.

runs/{endpoint}/{request id}/run-{n}/{round}/progress.json     the trial before this round's level
runs/{endpoint}/{request id}/run-{n}/{round}/level.json        which level it loads
runs/{endpoint}/{request id}/run-{n}/{round}/share-{w}.json    what one worker is to load
runs/{endpoint}/{request id}/run-{n}/{round}/tally-{w}.json    what it measured, or `{"error": "…"}`

A step reads one round and writes what comes after: repeated, it writes the same again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

from seatrial.bench.course import NextLevel
from seatrial.bench.document import read_document, write_document
from seatrial.bench.progress import TrialProgress
from seatrial.bench.share import ShareOrder
from seatrial_cdk.smoke_benchmark.runtime.trial_store import run_key

if TYPE_CHECKING:
    from seatrial_cdk.smoke_benchmark.runtime.custom_resource import TrialOrder
    from seatrial_cdk.smoke_benchmark.runtime.trial_store import TrialStore


class MissingDocumentError(Exception):
    """A document that an earlier step must have written isn't there; the message says which."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetRound:
    """One level of a fleet's trial, from its choice to its result.

    Attributes:
        store: Where documents lie.
        order: The run of the trial.
        number: The round's number in the run, from 0.
    """

    store: TrialStore
    order: TrialOrder
    number: int

    @property
    def next(self) -> Self:
        """The round after this one."""
        return replace(self, number=self.number + 1)

    def progress(self) -> TrialProgress:
        """Return where the trial stood before this round's level.

        Raises:
            MissingDocumentError: No step wrote it.
            BenchError: SEA501 when it can't be read.
        """
        return TrialProgress.from_json(self.read(self._key("progress")))

    def write_progress(self, progress: TrialProgress) -> None:
        """Write where the trial stands before this round's level."""
        self.store.write(self._key("progress"), progress.to_json())

    def level(self) -> NextLevel:
        """Return which level this round loads.

        Raises:
            MissingDocumentError: No step wrote it.
            BenchError: SEA501 when it can't be read.
        """
        return read_document(NextLevel, self.read(self._key("level")), where="level")

    def write_level(self, level: NextLevel) -> None:
        """Write which level this round loads."""
        self.store.write(self._key("level"), write_document(level))

    def share(self, worker: int) -> ShareOrder:
        """Return what a worker is to load.

        Raises:
            MissingDocumentError: No step wrote it.
            BenchError: SEA501 when it can't be read.
        """
        return read_document(ShareOrder, self.read(self._key(f"share-{worker}")), where="share")

    def write_share(self, share: ShareOrder) -> None:
        """Write what a worker is to load."""
        self.store.write(self._key(f"share-{share.worker}"), write_document(share))

    def tally_key(self, worker: int) -> str:
        """Return the key of what a worker measured."""
        return self._key(f"tally-{worker}")

    def read(self, key: str) -> str:
        """Return a document that an earlier step must have written.

        Raises:
            MissingDocumentError: It is not there.
        """
        text = self.store.read(key)
        if text is None:
            raise MissingDocumentError(f"{self.store.uri(key)} is missing")
        return text

    def _key(self, name: str) -> str:
        run = run_key(self.order["ResourceProperties"]["EndpointName"], self.order["RequestId"], self.order["Run"])
        return f"{run.removesuffix('.json')}/{self.number}/{name}.json"
