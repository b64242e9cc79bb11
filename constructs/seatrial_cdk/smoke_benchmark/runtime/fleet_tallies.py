"""What a level's workers measured, as one; a worker that could not load its share spoils the level."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from seatrial.bench.document import read_document, write_document
from seatrial.bench.share import CutShareError
from seatrial.bench.tally import LevelTally, merge
from seatrial.bench.unmeasured import Unmeasured, unmeasured_share

if TYPE_CHECKING:
    from seatrial_cdk.smoke_benchmark.runtime.fleet_round import FleetRound

NOTHING_SEEN = Unmeasured(occasion="level", sent=0, succeeded=0, errors={}, first_errors=(), longest_wait_s=None)


class ShareLostError(Exception):
    """Workers have not loaded their shares; the message says which and why.

    Attributes:
        seen: What all workers saw of the level, as far as they told.
    """

    def __init__(self, message: str, seen: tuple[Unmeasured, ...] = ()) -> None:
        super().__init__(message)
        self.seen = seen


class LateStartError(ShareLostError):
    """Workers were not ready at the common start: all that is wrong is that they had too little time."""


def merged_tally(this: FleetRound, workers: int) -> LevelTally:
    """Return the level that a round's workers loaded together.

    Raises:
        ShareLostError: Not every worker loaded its share.
        MissingDocumentError: A worker ended without a word.
        BenchError: SEA501 when a tally can't be read.
    """
    texts = [this.read(this.tally_key(worker)) for worker in range(workers)]
    lost = {worker: told for worker, text in enumerate(texts) if "error" in (told := json.loads(text))}
    if lost:
        why = "; ".join(f"worker {worker}: {told['error']}" for worker, told in lost.items())
        kind = LateStartError if all(told["late"] for told in lost.values()) else ShareLostError
        raise kind(f"{len(lost)} of {workers} workers could not load their share: {why}", tuple(map(_seen, texts)))
    return merge([LevelTally.from_json(text) for text in texts])


def error_document(error: Exception, *, late: bool) -> str:
    """Return the document of a share that could not be loaded; `late` when its worker missed the common start.

    Of a share that was cut, it holds what was seen.
    """
    told: dict[str, object] = {"error": str(error) or repr(error), "late": late}
    if isinstance(error, CutShareError):
        told["seen"] = write_document(error.seen)
    return json.dumps(told)


def _seen(text: str) -> Unmeasured:
    """Return what a worker saw, whether its share is a tally or was cut; of any other failure, nothing."""
    told = json.loads(text)
    if "error" not in told:
        return unmeasured_share(LevelTally.from_json(text))
    return read_document(Unmeasured, told["seen"], where="share") if told.get("seen") else NOTHING_SEEN
