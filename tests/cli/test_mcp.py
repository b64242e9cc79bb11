"""`seatrial mcp` as an assistant's client uses it, and as docs/how-to/assistants.md shows it (UPDATE_GOLDEN=1)."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from typing import TYPE_CHECKING, Any, Final

import anyio
from mcp import Client, StdioServerParameters

from seatrial.cli.mcp import mcp_command
from seatrial_base.terminal import run_and_report
from tests.cli.conftest import REPOSITORY, files

if TYPE_CHECKING:
    from pathlib import Path

    import pytest
    from mcp.types import CallToolResult, ListToolsResult

PAGE: Final = REPOSITORY / "docs" / "how-to" / "assistants.md"
SESSION: Final = re.compile(r"(<!-- session -->\n)(.*?)(<!-- end -->)", re.DOTALL)
CALLS: Final[list[tuple[str, dict[str, Any]]]] = [
    ("plan", {"specs": ["chat.yaml"], "environment": "dev"}),
    ("validate", {"specs": ["wrong.yaml"], "environment": ["dev"]}),
    ("rules", {"rules": ["SEA206"]}),
    ("plan", {"specs": ["chat.yaml"], "environment": "dev", "write": True}),
    ("lint", {"paths": ["../chat.yaml", "/etc/hosts", "link.yaml"]}),
]


def _answered(answer: CallToolResult) -> str:
    document = answer.structured_content
    if answer.is_error or document is None:
        (text,) = (block.text for block in answer.content if block.type == "text")
        return "error\n" + re.sub(r"not within \S+,", "not within …/endpoints,", text)
    if "instance_type" in document:
        shown = {name: document[name]["value"] for name in ("engine", "instance_type", "instance_count")}
        document = {"endpoint": document["endpoint"], **shown, "…": "…"}
    for finding in document.get("findings", ()):
        for name in ("title", "resource", "construct", "source", "evidence"):
            del finding[name]
    return json.dumps(document, ensure_ascii=False)


async def _session(folder: Path) -> str:
    """Return what a standard client hears that asks what there is and then everything at once."""
    answers: dict[int, CallToolResult] = {}
    server = StdioServerParameters(command=sys.executable, args=["-m", "seatrial.cli", "mcp"], cwd=folder)
    # `legacy`: the handshake that today's clients know.
    async with Client(server, mode="legacy") as client, anyio.create_task_group() as calls:
        listed = await client.list_tools()

        async def call(at: int, name: str, arguments: dict[str, Any]) -> None:
            answers[at] = await client.call_tool(name, arguments)

        for at, (name, arguments) in enumerate(CALLS):
            calls.start_soon(call, at, name, arguments)
        assert client.server_info is not None
        name_of_server = client.server_info.name
    lines = [f"→ initialize\n← {name_of_server}", "→ tools/list", *_listed(listed)]
    for at, (name, arguments) in enumerate(CALLS):
        lines += [f"→ {name} {json.dumps(arguments)}", f"← {_answered(answers[at])}"]
    return "".join(f"{line}\n" for line in lines)


def _listed(listed: ListToolsResult) -> list[str]:
    for tool in listed.tools:
        assert tool.annotations is not None
        assert tool.annotations.read_only_hint
    assert [tool.name for tool in listed.tools if tool.output_schema] == ["plan", "simulate"]
    (days,) = [tool.input_schema["properties"]["days"] for tool in listed.tools if tool.name == "simulate"]
    assert days["anyOf"][0] == {"type": "integer", "minimum": 1, "maximum": 366}
    return [
        f"← {tool.name}: " + ", ".join(
            name if name in tool.input_schema.get("required", ()) else f"{name}?"
            for name in tool.input_schema["properties"]
        )
        for tool in listed.tools
    ]  # fmt: skip


def test_a_standard_client_plans_checks_and_writes_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "endpoints"
    shutil.copytree(REPOSITORY / "examples" / "one_endpoint" / "environments", folder / "environments")
    text = (REPOSITORY / "examples" / "one_endpoint" / "chat.yaml").read_text(encoding="utf-8")
    one_type = text.replace("scaling:", "serving: {instance_types: [ml.g6.xlarge]}\nscaling:")
    (folder / "chat.yaml").write_text(one_type, encoding="utf-8")
    (folder / "wrong.yaml").write_text(text.replace("name: chat", "name: wrong\ncolour: red"), encoding="utf-8")
    (tmp_path / "chat.yaml").write_text("secret: of another repository\n", encoding="utf-8")
    (folder / "link.yaml").symlink_to(tmp_path / "chat.yaml")
    before = files(tmp_path)
    session = f"```text\n{anyio.run(_session, folder)}```\n"
    assert files(tmp_path) == before
    page = PAGE.read_text(encoding="utf-8")
    if os.environ.get("UPDATE_GOLDEN"):
        PAGE.write_text(SESSION.sub(lambda found: found[1] + session + found[3], page), encoding="utf-8")
    else:
        assert SESSION.findall(page)[0][1] == session


def test_without_the_extra_one_line_says_how_to_install_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def missing() -> int:
        mcp_command()
        return 0

    for name in [name for name in sys.modules if name.partition(".")[0] == "mcp"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "meta_path", [])
    assert run_and_report(missing) == 1
    assert capsys.readouterr().err == (
        "SEA603: the package mcp is not installed\n  hint: install it: pip install 'seatrial[mcp]'\n"
    )
