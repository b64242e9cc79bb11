from __future__ import annotations

import subprocess
import sys
from pathlib import Path

LINTED_REGIONS = ["us-east-1", "eu-west-1"]
# W3005 dislikes a DependsOn beside a reference; CDK writes both, and our teardown order is meant to be read.
LINT = [
    str(Path(sys.executable).with_name("cfn-lint")),
    "--ignore-checks",
    "W3005",
    "--regions",
    *LINTED_REGIONS,
    "--template",
]


def test_the_same_input_gives_the_same_bytes(assembly: Path, second_assembly: Path) -> None:
    assert contents(assembly) == contents(second_assembly)


def test_no_path_of_this_machine_is_in_the_assembly(assembly: Path) -> None:
    texts = [path.read_text() for path in assembly.glob("*.json")]
    assert [text for text in texts if "/tmp" in text or str(assembly) in text] == []  # noqa: S108 (searched for)


def test_cfn_lint_finds_nothing(assembly: Path) -> None:
    templates = sorted(str(path) for path in assembly.glob("*.template.json"))
    assert len(templates) == 5
    linted = subprocess.run([*LINT, *templates], capture_output=True, text=True, check=False)
    assert (linted.stdout, linted.stderr, linted.returncode) == ("", "", 0)


def contents(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}
