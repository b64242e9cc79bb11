"""The border to the terminal: only what can be shown gets through, and errors become messages and exit codes.

Texts of files, servers, AWS and specs may hold escape sequences. No view has to think of it: `guard_output` puts
itself before standard output and error, and `console` makes rich's consoles so that only their own styles remain.
"""

from __future__ import annotations

import codecs
import io
import json
import os
import re
import shutil
import signal
import sys
import tempfile
import threading
import traceback
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, TextIO, cast

from seatrial_base.errors import SeatrialError
from seatrial_base.findings import Finding, Place
from seatrial_base.secrets import redacted
from seatrial_base.text import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rich.console import Console, RenderableType


LAYOUT = "\n\t"
_IN_ASCII = {"±": "+/-", "×": "x", "≤": "<=", "≥": ">=", "–": "-", "—": "-", "−": "-", "…": "...", "“": '"', "”": '"'}  # noqa: RUF001 (what is replaced)


class OutputClosedError(Exception):
    """Nobody reads standard output any more, as after `| head`."""


class GuardedStream(io.TextIOBase):
    """A text stream that writes only what can be shown; rich, which writes styles, is given what lies behind."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    @property
    def rich_proxied_file(self) -> TextIO:
        """What rich's consoles write to; `console` makes them so that they write no control characters of others."""
        return self._stream

    @property
    def encoding(self) -> str:  # type: ignore[override]  # typeshed has an attribute where io has a property
        """The terminal's encoding."""
        return self._stream.encoding

    def write(self, text: str, /) -> int:
        """Write a text, without what can't be shown."""
        with_line_feeds = text.replace("\r\n", "\n")
        try:
            self._stream.write(printable(with_line_feeds, layout=LAYOUT))
        except OSError as error:
            _unwritten(error)
        return len(text)

    def flush(self) -> None:
        """Write what is held back."""
        try:
            self._stream.flush()
        except OSError as error:
            _unwritten(error)

    def writable(self) -> bool:
        """Say that it can be written to."""
        return True

    def isatty(self) -> bool:
        """Return whether a terminal lies behind."""
        return self._stream.isatty()

    def fileno(self) -> int:
        """Return the descriptor that lies behind."""
        return self._stream.fileno()


def _unwritten(error: OSError) -> NoReturn:
    if isinstance(error, BrokenPipeError):
        raise OutputClosedError from error
    raise SeatrialError.of("SEA101", f"the output can't be written: {error.strerror}") from error


def guard_output() -> None:
    """Put the border before standard output and error; one that is closed is thrown away, not an error."""
    codecs.register_error("seatrial.ascii", _replaced)
    sys.stdout, sys.stderr = _guarded(sys.stdout), _guarded(sys.stderr)
    if not os.environ.get("COLUMNS", "1").strip("0"):  # rich would show nothing at all in no columns
        del os.environ["COLUMNS"]


def _guarded(stream: TextIO | None) -> TextIO:
    if stream is None:  # closed when the process began
        stream = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115 (lives as long as the process)
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(errors="seatrial.ascii")
    return cast("TextIO", GuardedStream(stream))


def console(*, stderr: bool = False, markup: bool = False) -> Console:
    """Return a console whose texts are printable; only the styles and cursor movements of rich itself are written.

    `markup`: square brackets in texts are styles: only for a caller that escapes what isn't its own.
    """
    from rich.console import Console  # noqa: PLC0415 (who prints no view needs no rich)
    from rich.segment import Segment  # noqa: PLC0415 (likewise)

    class PrintableConsole(Console):
        def render(self, *given: object, **options: object) -> list[Segment]:
            rendered = super().render(*given, **options)  # type: ignore[arg-type]  # passed on as they came
            return [_printable_segment(segment) for segment in rendered]

        def on_broken_pipe(self) -> None:
            raise OutputClosedError

    def _printable_segment(segment: Segment) -> Segment:
        if segment.control is not None:
            return segment
        return Segment(printable(segment.text), segment.style)

    return PrintableConsole(stderr=stderr, markup=markup, emoji=False, highlight=False)


def show(view: RenderableType) -> None:
    """Print a view for users, in ASCII where the terminal has no more."""
    console().print(view)


def show_lines(view: RenderableType) -> None:
    """Print a view whose lines stay whole where they are read by programs; a terminal wraps them."""
    shown_on = console()
    shown_on.print(view, soft_wrap=not shown_on.is_terminal)


def show_json(document: object) -> None:
    """Print a document for machines; what can't be shown is escaped as JSON escapes it."""
    show_json_text(json.dumps(document, indent=2, ensure_ascii=False))


def show_json_text(text: str) -> None:
    """Print JSON that is text already; what can't be shown, or not in this encoding, is escaped as JSON escapes it."""
    encoding = sys.stdout.encoding or "ascii"
    unicode = encoding.lower().startswith("utf")

    def shown(match: re.Match[str]) -> str:
        character = match[0]
        if unicode and character.isprintable():
            return character
        return json.dumps(character)[1:-1] if character != "\x7f" else r"\u007f"

    show_text(re.sub(r"[^\x00-\x7e]", shown, text.removesuffix("\n")) + "\n")


def show_text(text: str) -> None:
    """Print lines as they are, in ASCII where the terminal has no more."""
    sys.stdout.write(text)
    sys.stdout.flush()


def _replaced(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    unknown = error.object[error.start : error.end]
    return "".join(_IN_ASCII.get(character, "?") for character in unknown), error.end


INTERRUPTED = 130  # 128 + SIGINT, as shells report it
# So long may an interrupted command clean up by itself.
PATIENCE_S = 2.0
_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_scratch: set[Path] = set()
_spared = threading.Event()  # the next signal ends nothing


def end_when_interrupted() -> None:
    """Let SIGINT and SIGTERM raise KeyboardInterrupt, and end the process where that does not get through in time.

    Python runs a signal's handler between two of its own steps. A look-up of a name, or threads that are waited for,
    hold it up for a minute: another thread sees the signal at once and ends the process after `PATIENCE_S`.
    """
    for number in _SIGNALS:  # a job in the background is started with Ctrl-C ignored
        signal.signal(number, signal.default_int_handler)
    heard, waker = os.pipe()
    os.set_blocking(waker, False)
    signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
    threading.Thread(target=_watch, args=(heard,), daemon=True).start()


@contextmanager
def interrupt_noted() -> Iterator[Callable[[], bool]]:
    """Let the first SIGINT or SIGTERM raise nothing, and yield whether it came; the next one ends the command."""
    came = threading.Event()

    def note(_number: int, _frame: object) -> None:
        if came.is_set():
            raise KeyboardInterrupt
        came.set()

    before = {number: signal.signal(number, note) for number in _SIGNALS}
    _spared.set()
    try:
        yield came.is_set
    finally:
        _spared.clear()
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def scratch_folder(prefix: str) -> Iterator[Path]:
    """Make a folder that is gone afterwards, also when the process is ended."""
    with tempfile.TemporaryDirectory(prefix=prefix, ignore_cleanup_errors=True) as name:
        folder = Path(name)
        _scratch.add(folder)
        try:
            yield folder
        finally:
            _scratch.discard(folder)


def _watch(heard: int) -> None:
    while number := os.read(heard, 1):
        if number[0] in _SIGNALS and _spared.is_set():
            _spared.clear()
        elif number[0] in _SIGNALS:
            threading.Event().wait(PATIENCE_S)
            for folder in tuple(_scratch):
                shutil.rmtree(folder, ignore_errors=True)
            sys.stderr.write("interrupted\n")
            sys.stderr.flush()
            os._exit(INTERRUPTED)


FAILED = 1
INTERNAL = 70  # EX_SOFTWARE of sysexits.h
SIGNALLED = {128 + number: f"ended by {number.name}" for number in (signal.SIGTERM, signal.SIGHUP)}
UNREAD = 141  # 128 + SIGPIPE, likewise
# With any text in it, an unexpected error is printed with its traceback.
TRACEBACK_VARIABLE = "SEATRIAL_TRACEBACK"
EXTRAS = {
    "anyio": "mcp",
    "aws_cdk": "cdk",
    "constructs": "cdk",
    "mcp": "mcp",
    "seatrial_laptop": "local",
    "tokenizers": "local",
}
"""The extra of `seatrial` that brings each module which it may lack."""


def run_command_line(run: Callable[[], int]) -> NoReturn:
    """Run a command line and exit with its code; whatever goes wrong is a message without a traceback."""
    guard_output()
    code = run_and_report(run)
    written = run_and_report(_flush_output)
    if written:  # what is left unwritten would fail once more when Python ends
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(code or written)


def _flush_output() -> int:
    sys.stdout.flush()
    return 0


def run_and_report(run: Callable[[], int]) -> int:
    """Run, write what went wrong, and return the exit code."""
    try:
        code = run()
    except KeyboardInterrupt:
        code = INTERRUPTED
    except SeatrialError as error:
        _write(redacted(str(error)))
        code = error.exit_code
    except Exception as error:  # noqa: BLE001 (the border: what nobody expected becomes a message that can be reported)
        code = _unexpected(error)
    if code == INTERRUPTED:  # also what typer makes of a KeyboardInterrupt, without a word
        _write("interrupted")
    elif code in SIGNALLED:
        _write(SIGNALLED[code])
    return code


def _unexpected(error: Exception) -> int:
    """Tell an error that no command made a message of: one of the system, or one of ours."""
    if isinstance(error, OutputClosedError):
        return UNREAD
    if os.environ.get(TRACEBACK_VARIABLE):
        _write(redacted("".join(traceback.format_exception(error))))
    problem = _of_the_system(error) or _internal(error)
    _write(redacted(str(problem)))
    return INTERNAL if problem.rule == "SEA517" else FAILED


def _of_the_system(error: Exception) -> Finding | None:
    """Return what the machine refused or lacks: a file, room on a disk, memory, an encoding's letter, a package."""
    hint = f"set {TRACEBACK_VARIABLE}=1 for a traceback"
    match error:
        case OSError(filename=file, strerror=str(reason)):
            where = os.fsdecode(file) if isinstance(file, str | bytes) else ""
            return Finding("SEA101", Place.at(where), reason, _without_folder() or hint)
        case UnicodeEncodeError(object=text, start=at):
            message = f"a text holds U+{ord(text[at]):04X}, which can't be written as {error.encoding}"
            return Finding("SEA101", Place(), message, "a file's name or an argument is not UTF-8")
        case MemoryError():
            return Finding("SEA101", Place(), "out of memory", hint)
        case ModuleNotFoundError(name=str(name)) if "." not in name:  # a missing part of a package is our mistake
            extra = EXTRAS.get(name)
            remedy = f"install it: pip install 'seatrial[{extra}]'" if extra else "install Seatrial again"
            return Finding("SEA603", Place(), f"the package {name} is not installed", remedy)
    return None


def _without_folder() -> str:
    try:
        os.getcwd()  # noqa: PTH109 (Path.cwd() says the same)
    except OSError:
        return "the working folder no longer exists: change to another"
    return ""


def _internal(error: Exception) -> Finding:
    what = f"{type(error).__name__}: {error}".strip().splitlines()[0]
    hint = f"report this bug with the output of {TRACEBACK_VARIABLE}=1"
    return Finding("SEA517", Place(), f"an internal error: {what}", hint)


def _write(text: str) -> None:
    """Write a message, unless no one can read it."""
    try:
        sys.stderr.write(f"{text.rstrip()}\n")
        sys.stderr.flush()
    except (OutputClosedError, SeatrialError):
        return
