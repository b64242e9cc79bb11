"""Public load tools, each optional and in an environment of its own: `install.sh guidellm` makes one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

ENVIRONMENTS = Path(__file__).parent / ".venv"
TOOLS = ("guidellm",)
STREAMS = 512
REQUESTS = 1_024


def missing_tools() -> Iterator[str]:
    """Say what isn't installed, and so isn't in the table."""
    for name in TOOLS:
        if not _program(name).exists():
            yield f"{name}: skipped, not installed (sh benchmarks/load_client/install.sh {name})"
    yield "aiperf, inference-perf: skipped, this benchmark can't drive them yet"


def tool_commands(http_port: str, folder: Path) -> Iterator[tuple[str, int, list[str]]]:
    """Give name, streams and command of each tool that is installed (guidellm 0.8: the words of its command line)."""
    if _program("guidellm").exists():
        prompts = folder / "prompts.jsonl"
        prompts.write_text(f"{json.dumps({'prompt': 'word ' * 32})}\n" * REQUESTS)
        yield (
            "guidellm",
            STREAMS,
            [
                *(str(_program("guidellm")), "run", "--disable-console-interactive"),
                *("--backend", f"kind=openai_http,target=http://127.0.0.1:{http_port},model=m"),
                *("--profile", f"kind=concurrent,streams={STREAMS}"),
                *("--constraint", f"kind=max_requests,count={REQUESTS}"),
                *("--data", f"kind=json_file,path={prompts}"),
                *("--output", f"kind=json,path={folder / 'guidellm.json'}"),
            ],
        )


def _program(name: str) -> Path:
    return ENVIRONMENTS / name / "bin" / name
