"""What the attentions of Swin and XCiT have in common."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from .checks import check_equal_heads
from .formula import Formula


class JointAttention(Formula, torch.nn.Module):
    """Attention of which q, k and v are equally wide.

    Parameters: in_proj_weight [3 C, C] with the rows of q, k and v in this
    order, in_proj_bias [3 C], out_proj.weight [C, C], out_proj.bias [C].
    """

    def __init__(
        self,
        dim: int,
        heads: int,
        *,
        activation: str = "softmax",
        dropout: float = 0.0,
        projection_dropout: float = 0.0,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        check_equal_heads(type(self).__name__, dim, heads)
        self.dim, self.heads, self.head_dim = dim, heads, dim // heads
        self.dropout, self.projection_dropout = dropout, projection_dropout
        self.activation = activation
        place = {"device": device, "dtype": dtype}
        self.in_proj_weight = torch.nn.Parameter(torch.empty(3 * dim, dim, **place))
        self.in_proj_bias = torch.nn.Parameter(torch.empty(3 * dim, **place))
        self.out_proj = torch.nn.Linear(dim, dim, **place)

    def reset_parameters(self) -> None:
        """q, k and v uniform by Glorot and Bengio, as torch does it for its
        packed projection; biases zero."""
        torch.nn.init.xavier_uniform_(self.in_proj_weight)
        torch.nn.init.zeros_(self.in_proj_bias)
        self.out_proj.reset_parameters()
        torch.nn.init.zeros_(self.out_proj.bias)

    def extra_repr(self) -> str:
        return f"{self.dim}, heads={self.heads}, activation={self.activation!r}"

    def _weight_dropout(self) -> float:
        return self.dropout if self.training else 0.0

    def _project_out(self, rows: Tensor) -> Tensor:
        return F.dropout(self.out_proj(rows), self.projection_dropout, self.training)
