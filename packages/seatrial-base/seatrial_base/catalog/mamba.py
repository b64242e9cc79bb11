"""Mamba layers of a `config.json`: their parameters, and the state that each sequence keeps in them.

Mamba-2 has heads, as attention has, and groups that share their inputs; Mamba-1 has neither. Each family writes the
same numbers under names of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from seatrial_base.catalog.config_json import ConfigJson

_STATE_BYTES = 4  # of a value: the engines keep the state in 32 bits where the checkpoint says so (Nemotron 3)
_USUAL_CONVOLUTION = 4  # tokens, of every published model, where it is not said
_WIDTH_PER_RANK = 16  # modeling_jamba.py: mamba_dt_rank "auto" is the hidden size over it


@dataclass(frozen=True, slots=True)
class Mamba:
    """One Mamba layer.

    Attributes:
        hidden: Width of the residual stream.
        inner: Width inside the layer.
        state: Elements that each of the inner values keeps of a sequence.
        convolution: Tokens that the convolution sees.
        heads: Heads of Mamba-2; 0 for Mamba-1.
        groups: Groups of heads that share their inputs; Mamba-2.
        time_rank: Rank of the time step; Mamba-1.
    """

    hidden: int
    inner: int
    state: int
    convolution: int
    heads: int
    groups: int
    time_rank: int

    @property
    def params(self) -> int:
        """Parameters: projections, convolution, time step, decay, and the norm in front of the output."""
        outward = self.inner * self.hidden
        if not self.heads:
            inputs = self.hidden * 2 * self.inner + self.inner * (self.time_rank + 2 * self.state)
            steps = self.time_rank * self.inner + self.inner + self.inner * self.state + self.inner
            return inputs + steps + self.inner * (self.convolution + 1) + self.time_rank + 2 * self.state + outward
        inputs = self.hidden * (self.inner + self._convolved + self.heads)
        return inputs + self._convolved * (self.convolution + 1) + 3 * self.heads + self.inner + outward

    @property
    def state_bytes(self) -> int:
        """Bytes that a sequence keeps in this layer, however long it is."""
        values = self.inner * self.state + self._convolved * (self.convolution - 1)
        return values * _STATE_BYTES

    @property
    def _convolved(self) -> int:
        """Values that the convolution sees: the inner ones, and both inputs of each group."""
        return self.inner + (2 * self.groups * self.state if self.heads else 0)


def mamba_of(config: ConfigJson) -> Mamba:
    """Return what a Mamba layer of a configuration looks like."""
    hidden = config.number("hidden_size")
    heads = config.first("mamba_num_heads", "mamba_n_heads") or 0
    width = config.first("mamba_head_dim", "mamba_d_head") or 0
    expanded = (config.first("mamba_expand", "expand") or 2) * hidden
    inner = config.first("mamba_d_ssm") or (heads * width if width else expanded)
    return Mamba(
        hidden=hidden,
        inner=inner,
        state=config.first("ssm_state_size", "mamba_d_state") or 0,
        convolution=config.first("conv_kernel", "mamba_d_conv") or _USUAL_CONVOLUTION,
        heads=heads,
        groups=config.first("n_groups", "mamba_n_groups") or 1,
        time_rank=config.first("mamba_dt_rank") or -(-hidden // _WIDTH_PER_RANK),
    )
