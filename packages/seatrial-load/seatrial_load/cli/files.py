"""The files that the command line's trial reads and writes: prompts, traces, records, the result."""

from __future__ import annotations

import os
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from seatrial_base.errors import BenchError
from seatrial_base.field_facts import without
from seatrial_base.files import check_regular, read_text, whole_file, write_whole
from seatrial_base.findings import Finding, Place
from seatrial_base.secrets import redacted
from seatrial_base.terminal import INTERRUPTED, interrupt_noted, show_text
from seatrial_base.text import printable
from seatrial_load.documents.request import CONVERSATIONS, MADE_UP, closed_loop

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from seatrial_load.decode.response import RequestRecord
    from seatrial_load.documents.options import TrialFiles
    from seatrial_load.documents.progress import TrialProgress, Watch
    from seatrial_load.documents.request import TrialRequest
    from seatrial_load.documents.result import TrialResult
    from seatrial_load.trial.dependencies import Keep


def read_result_file(path: Path, *, hint: str = "") -> TrialResult:
    """Read a result from a file; the hint names the alternatives.

    Raises:
        BenchError: SEA501 when it can't be read or is no result of this release's.
    """
    from seatrial_load.documents.result import TrialResult

    where = path.as_posix()
    try:
        text = read_text(path)
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        raise BenchError.of("SEA501", f"the result can't be read: {reason}", where=where, hint=hint) from error
    try:
        return TrialResult.from_json(text)
    except BenchError as error:
        raise BenchError(
            replace(problem, place=Place.at(where, problem.field)) for problem in error.problems
        ) from error


def write_result_file(result: TrialResult, path: Path) -> None:
    """Write a result as JSON, over an earlier one.

    Raises:
        BenchError: SEA506 when it can't be written.
    """
    try:
        write_whole(path, f"{redacted(result.to_json())}\n")
    except OSError as error:
        raise BenchError.of("SEA506", f"can't be written: {error.strerror}", where=path.as_posix()) from error


@contextmanager
def prompted(request: TrialRequest, files: TrialFiles) -> Iterator[tuple[TrialRequest, Path | None]]:
    """Yield the trial with its source of prompts, of which at most one is given, and their file.

    The file is None for made-up prompts.

    Raises:
        BenchError: SEA509, SEA510, SEA550 or SEA551, with every bad line; SEA501, a speed of what has no times.
    """
    if files.prompts is not None:
        yield _conversing(_named(request, "jsonl", files.prompts), files.prompts), files.prompts
    elif files.trace is not None:
        yield _replayed(_named(request, "trace", files.trace), files.trace, files), files.trace
    else:
        yield request, None


def _named(request: TrialRequest, source: Literal["jsonl", "trace"], path: Path) -> TrialRequest:
    from seatrial_load.prompts.choose import digest_of

    rule = "SEA509" if source == "jsonl" else "SEA510"
    try:
        check_regular(path)
        digest = digest_of(path)
    except OSError as unread:
        raise BenchError.of(rule, f"can't be read: {unread.strerror}", where=path.as_posix()) from unread
    made_up = without(request.workload, CONVERSATIONS, MADE_UP)
    return replace(request, workload=replace(made_up, source=source, source_digest=digest))


def _conversing(request: TrialRequest, path: Path) -> TrialRequest:
    from seatrial_load.prompts.jsonl import JsonlPrompts

    chat = request.workload.schema == "openai_chat"
    lines = JsonlPrompts(path, tokens_out=request.workload.output_tokens, chat=chat)
    if not (turns := lines.conversations):
        return request
    delays_s = tuple(lines.delays_s) if any(lines.delays_s) else ()
    return replace(request, workload=replace(request.workload, conversations=turns, delays_s=delays_s))


def _replayed(request: TrialRequest, path: Path, files: TrialFiles) -> TrialRequest:
    """Return the trial of a trace: at its own times, or closed, where those are unknown or levels were requested."""
    from seatrial_load.prompts.trace import read_trace

    trace = read_trace(path)
    if trace.skipped:
        show_text(f"{path.as_posix()}: skipped {trace.skipped} requests without prompt or answer\n")
    if trace.shortened:
        show_text(f"{path.as_posix()}: {trace.shortened} gaps of more than an hour are replayed as one\n")
    closed = files.in_flight or not trace.due_s
    if closed and files.speed != 1:
        message = "the sessions have no times of their own, and keep the recorded gaps"
        raise BenchError.of("SEA501", message, where="command line", field="--speed")
    workload = replace(
        request.workload, input_tokens=round(trace.tokens_in_mean), output_tokens=round(trace.tokens_out_mean)
    )
    if closed or trace.gaps_s:
        delays_s = tuple(trace.gaps_s) if any(trace.gaps_s) else ()
        workload = replace(workload, conversations=trace.turns, delays_s=delays_s)
    load = closed_loop(request.load) if closed else replace(closed_loop(request.load), arrival="replay")
    return replace(request, workload=workload, load=load)


def check_folder(path: Path | None) -> None:
    """Refuse a folder that no report can be written to, before anything is measured for it.

    Raises:
        BenchError: SEA506 when it is no folder, or can't be made or written to.
    """
    if path is None:
        return
    nearest = next(place for place in (path, *path.absolute().parents) if place.exists())
    if not nearest.is_dir():
        raise BenchError.of("SEA506", f"can't be written: {nearest.as_posix()} is not a folder", where=path.as_posix())
    if not os.access(nearest, os.W_OK):
        why = f"can't be written: no permission in {nearest.as_posix()}"
        raise BenchError.of("SEA506", why, where=path.as_posix())


@dataclass(slots=True)
class Unwritten:
    """Outputs of a trial that could not be written: noted as it happens, reported after the verdict."""

    problems: list[Finding] = field(default_factory=list)

    def note(self, path: Path, error: OSError) -> None:
        """Note the first failure of a file or folder."""
        where = path.as_posix()
        if all(problem.where != where for problem in self.problems):
            message = f"can't be written: {error.strerror}; the measurement continues"
            self.problems.append(Finding("SEA506", Place.at(where), message))

    def raise_if_any(self) -> None:
        """Raise what was noted.

        Raises:
            BenchError: SEA506, with every file and folder.
        """
        if self.problems:
            raise BenchError(self.problems)


@contextmanager
def keeping(path: Path | None, unwritten: Unwritten) -> Iterator[Keep | None]:
    """Yield what writes every request of the trial into a file, level by level; None without a file.

    The file takes its place when the trial is over. A disk that becomes full ends neither the trial nor loses its
    result: the failure is noted, and the file that was there before stays.

    Raises:
        BenchError: SEA506 when the file can't be opened: nothing was sent yet.
    """
    if path is None:
        yield None
        return
    records = _Records(path, unwritten)
    try:
        yield records.keep
        records.finish()
    finally:
        records.discard()


class _Records:
    """The file of every request, under another name until it is whole."""

    def __init__(self, path: Path, unwritten: Unwritten) -> None:
        self._path = path
        self._unwritten = unwritten
        self._held = ExitStack()
        try:
            self._file = self._held.enter_context(whole_file(path))
        except OSError as error:
            raise BenchError.of("SEA506", f"can't be written: {error.strerror}", where=path.as_posix()) from error
        self._is_whole = True

    def keep(self, records: Sequence[RequestRecord], *, concurrency: int, ramp: int) -> None:
        """Write the requests of a level, unless an earlier level could not be written."""
        from seatrial_load.decode.response import write_records

        if not self._is_whole:
            return
        try:
            write_records(self._file, records, concurrency=concurrency, ramp=ramp)
            self._file.flush()
        except OSError as error:
            self._unwritten.note(self._path, error)
            self.discard()

    def finish(self) -> None:
        """Put the file in its place, if all of it was written."""
        if not self._is_whole:
            return
        self._is_whole = False
        try:
            self._held.close()
        except OSError as error:
            self._unwritten.note(self._path, error)

    def discard(self) -> None:
        """Leave nothing of a file that isn't whole."""
        if self._is_whole:
            self._is_whole = False
            gone = OSError("the records are incomplete")
            with suppress(OSError):
                self._held.__exit__(OSError, gone, None)


# Runs a trial with a watch of its own and shows it.
Show: TypeAlias = "Callable[[TrialRequest, Callable[[Watch], TrialResult]], TrialResult]"


@dataclass(frozen=True, slots=True, kw_only=True)
class BaselineResult:
    """An earlier result, and its place."""

    result: TrialResult
    uri: str


def measured_trial(
    request: TrialRequest,
    keep: Keep | None,
    file: Path | None,
    *,
    speed: float,
    baseline: BaselineResult | None,
    show: Show,
    unfinished: Path | None = None,
) -> TrialResult:
    """Run a trial to its end, or to the first interruption: then it is stopped as cancelled, with what was measured.

    Args:
        unfinished: The file that has the result so far after each level; the caller removes it.

    Raises:
        KeyboardInterrupt: It was interrupted before it had measured anything, or twice.
    """
    from seatrial_load.documents.result import TrialResult
    from seatrial_load.documents.stop import Stop, StopReason
    from seatrial_load.trial.dependencies import Tools
    from seatrial_load.trial.finalize import result_so_far
    from seatrial_load.trial.preflight import with_model
    from seatrial_load.trial.run import run_trial

    tools = Tools(prompts_file=file, replay_speed=speed)
    named = with_model(request, tools)
    if named is not request:
        name = " ".join(printable(named.endpoint).split())
        show_text(f"model: {name}, the only one of the server\n")
    request = named
    tools = tools if keep is None else replace(tools, keep=keep)
    earlier, uri = (None, "") if baseline is None else (baseline.result, baseline.uri)

    def keep_result(progress: TrialProgress) -> None:
        if unfinished is not None and progress.levels:
            with suppress(BenchError, OSError):  # what can't be written is told at the end, with the result
                unfinished.parent.mkdir(parents=True, exist_ok=True)
                write_result_file(result_so_far(request, progress), unfinished)

    with interrupt_noted() as is_interrupted:

        def should_stop() -> Stop | None:
            return Stop(reason=StopReason.CANCELLED, because="interrupted") if is_interrupted() else None

        def run(watch: Watch) -> TrialResult:
            result = run_trial(
                request,
                tools=replace(tools, watch=watch),
                on_progress=keep_result,
                should_stop=should_stop,
                baseline=earlier,
                baseline_uri=uri,
            )
            if not isinstance(result, TrialResult):
                raise TypeError("a trial that never pauses has paused")
            if result.stopped.reason == StopReason.CANCELLED and not result.levels:
                raise KeyboardInterrupt
            return result

        return show(request, run)


def exit_code(result: TrialResult) -> int:
    """Return the exit code of a measured trial: 0 when it passed, 130 when it was interrupted, else 1."""
    if result.stopped.reason == "cancelled":
        return INTERRUPTED
    return int(result.verdict.status != "pass")
