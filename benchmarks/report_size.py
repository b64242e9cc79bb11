"""CPU seconds and bytes of a trial's report by its number of levels, each with everything that a level can hold.

    python -m benchmarks.report_size [LEVELS…]

The trials are made up: no request is sent. The seconds depend on the machine, the bytes do not.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from seatrial.report.write import write_trial_report
from tests.report.rich import rich_level, rich_request
from tests.report.samples import concluded
from tests.sample_plan import sample_plan

LEVELS = (10, 100, 1_000)


def main(counts: list[int]) -> None:
    """Print a table."""
    plan = sample_plan()
    request = rich_request(plan)
    print("levels   CPU s  page MB  Markdown MB  JSON MB")
    for count in counts:
        result = concluded(request, [rich_level(concurrency) for concurrency in range(1, count + 1)], "")
        with tempfile.TemporaryDirectory() as folder:
            before_s = time.process_time()
            report = write_trial_report(result, plan, Path(folder))
            spent_s = time.process_time() - before_s
            page, markdown, text = (path.stat().st_size / 1e6 for path in (report.html, report.markdown, report.json))
        print(f"{count:6}  {spent_s:6.2f}  {page:7.2f}  {markdown:11.2f}  {text:7.2f}")


if __name__ == "__main__":
    main([int(count) for count in sys.argv[1:]] or list(LEVELS))
