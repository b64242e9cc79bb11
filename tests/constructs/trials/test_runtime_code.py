from __future__ import annotations

import io
import subprocess
import sys
import zipfile
from typing import TYPE_CHECKING

from seatrial_cdk.trials.trial_service import runtime_archive

if TYPE_CHECKING:
    from pathlib import Path

PACKAGE = "seatrial_cdk.trial_service.runtime"


def test_the_handler_starts_from_the_archive_with_the_standard_library_alone(tmp_path: Path) -> None:
    archive = tmp_path / "runtime.zip"
    archive.write_bytes(runtime_archive())
    code = f"import sys; sys.path.insert(0, {str(archive)!r}); import {PACKAGE}.handler as m; print(m.handler.__name__)"
    started = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=False)
    assert (started.stdout, started.stderr) == ("handler\n", "")


def test_only_the_bench_the_payloads_and_the_handlers_are_in_the_archive() -> None:
    with zipfile.ZipFile(io.BytesIO(runtime_archive())) as archive:
        names = archive.namelist()
    tops = {name.rpartition("/")[0] for name in names}
    assert {top for top in tops if not top.startswith("seatrial_load")} == {
        "seatrial_base",
        "seatrial_base/catalog",
        "seatrial_base/catalog/data",
        "seatrial_cdk",
        "seatrial_cdk/trial_service",
        "seatrial_cdk/trial_service/runtime",
        "seatrial_cdk/trials",
        "seatrial_cdk/trials/runtime",
        "seatrial_cdk/trials/runtime/models/sagemaker/2017-07-24",
    }
    assert [name for name in names if not name.endswith(".py")] == [
        "seatrial_base/catalog/data/rules.json",
        "seatrial_base/catalog/data/symptoms.json",
        "seatrial_cdk/trials/runtime/models/sagemaker/2017-07-24/service-2.json",
    ]


def test_capacity_and_severity_are_told_by_the_archives_own_lists(tmp_path: Path) -> None:
    with zipfile.ZipFile(io.BytesIO(runtime_archive())) as archive:
        archive.extractall(tmp_path)
    severity = "Finding('SEA503', Place(), '').severity"
    asked = "is_lack_of_capacity('CapacityError: Unable to provision requested ML compute capacity')"
    code = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r}); "
        f"from seatrial_cdk.trials.runtime.components import is_lack_of_capacity; "
        f"from seatrial_base.findings import Finding, Place; print({asked}, {severity})"
    )
    told = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=False)
    assert (told.stdout, told.stderr) == ("True error\n", "")


def test_the_archive_is_the_same_every_time() -> None:
    assert runtime_archive() == runtime_archive()
