"""What the peers are told of NVIDIA's A10G where they do not know it; the numbers of Seatrial's own catalog.

`tests/benchmarks` checks that they are. The link is the nominal rate of PCIe 4.0 x16 in one direction, which is what
llm-analysis ships for this card and aiconfigurator for other cards without NVLink.
"""

from __future__ import annotations

FLOPS = 70e12
"""Dense 16-bit operations per second."""
MEMORY_BANDWIDTH_BYTES_S = 600e9
MEMORY_BYTES = 23_999_807_488
LINK_BYTES_S = 32e9
"""One direction."""
