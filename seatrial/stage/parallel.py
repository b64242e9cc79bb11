"""Does one piece of work for each of many things at once, and lists everything that went wrong."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from botocore.exceptions import BotoCoreError, ClientError

from seatrial.stage.destination import reason
from seatrial.stage.source import StoppedError
from seatrial_base.errors import StageError
from seatrial_base.findings import Finding, Place
from seatrial_load.aws.errors import aws_problem

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Sequence
    from concurrent.futures import Future

WORKERS = 8
"""Files at once: together with parts of 32 MiB this bounds the memory that file contents take to 256 MiB."""

Item = TypeVar("Item")
Result = TypeVar("Result")

_CHANGED = "the file changed during the copy: stage it again when nothing writes to it"


def for_each(
    items: Sequence[Item], work: Callable[[Item], Result], name: Callable[[Item], str], stop: threading.Event
) -> tuple[Result, ...]:
    """Return what the work gives for each item, in the items' order.

    Args:
        items: What is worked on.
        work: The work on one item, on a thread of its own.
        name: The item's name, for its problem.
        stop: Set when the caller is interrupted, so that running work ends at its next part.

    Raises:
        StageError: With the problem of every item that failed, sorted by name; expired credentials are told once.
    """
    with ThreadPoolExecutor(WORKERS) as pool:
        futures = {pool.submit(work, item): item for item in items}
        try:
            for future in as_completed(futures):
                future.exception()
        except BaseException:
            stop.set()
            pool.shutdown(cancel_futures=True)
            raise
    problems = dict.fromkeys(found for future, item in futures.items() for found in _problems(future, name(item)))
    if problems:
        raise StageError(sorted(problems, key=lambda problem: problem.where))
    return tuple(future.result() for future in futures)


def _problems(future: Future[Result], name: str) -> tuple[Finding, ...]:
    error = future.exception()
    if error is None or isinstance(error, StoppedError):
        return ()
    if isinstance(error, StageError):
        return error.problems
    if (told := _of_aws(error, name)) is not None:
        return (told,)
    if isinstance(error, ClientError):
        hint = _CHANGED if error.response["Error"].get("Code") == "BadDigest" else ""
        return (Finding("SEA362", Place.at(name), reason(error), hint),)
    if isinstance(error, BotoCoreError | OSError):
        return (Finding("SEA362", Place.at(name), f"{error}".replace("\n", " ")),)
    raise error


def _of_aws(error: BaseException, name: str) -> Finding | None:
    """Return what is wrong with the caller, credentials or permissions; credentials are every file's, so told once."""
    problem = aws_problem(error, where=name) if isinstance(error, BotoCoreError | ClientError) else None
    if problem is None or problem.rule not in ("SEA503", "SEA511"):
        return None
    return replace(problem, place=Place(field=problem.field)) if problem.rule == "SEA503" else problem
