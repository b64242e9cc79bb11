from __future__ import annotations

import subprocess
import sys


def test_importing_the_catalog_reads_no_data_and_no_pydantic() -> None:
    code = (
        "import sys; from seatrial_base.catalog import engines, images, instances, models; "
        "print('pydantic' in sys.modules, instances.all_instances.cache_info().currsize, "
        "models.all_models.cache_info().currsize)"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert answer.stdout.split() == ["False", "0", "0"]
