from __future__ import annotations

import subprocess
import sys


def test_importing_the_catalog_reads_no_data_and_no_pydantic() -> None:
    code = (
        "import sys; from seatrial_base.catalog import engines, images, instances, models; "
        "print('pydantic' in sys.modules, 'rows' in vars(instances.INSTANCES), 'rows' in vars(models.MODELS))"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert answer.stdout.split() == ["False", "False", "False"]
