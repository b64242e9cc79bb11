from __future__ import annotations

from hypothesis import settings

# How long an example takes is measured in benchmarks/, never judged by a test on a machine that does other things.
settings.register_profile("seatrial", deadline=None)
settings.load_profile("seatrial")
