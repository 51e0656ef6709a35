"""torch.nn.MultiheadAttention with any activation."""

from __future__ import annotations

from typing import Any, Callable, Optional, Tuple

import torch
import torch.nn.functional as F
from torch import Tensor

from .. import functional
from .checks import check_inputs
from .masks import visibility

_OP = "MultiheadAttention"


class MultiheadAttention(torch.nn.MultiheadAttention):
    """torch.nn.MultiheadAttention with a formula in the place of softmax.

    Constructor, parameters, state dict and forward are those of torch's module;
    `activation` comes on top. Where a query may see no key, its output is that
    of zero weights, not NaN.

    >>> attention = polyattn.nn.MultiheadAttention(64, 4, activation="x^3/sqrt(N)")
    >>> x = torch.randn(10, 2, 64)
    >>> y, weights = attention(x, x, x)
    >>> y.shape, weights.shape
    (torch.Size([10, 2, 64]), torch.Size([2, 10, 10]))
    """

    _before_weights: Optional[Callable[..., Tensor]] = None  # of match_start

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: Optional[int] = None,
        vdim: Optional[int] = None,
        batch_first: bool = False,
        device: Any = None,
        dtype: Any = None,
        *,
        activation: str = "softmax",
    ) -> None:
        super().__init__(
            embed_dim,
            num_heads,
            dropout=dropout,
            bias=bias,
            add_bias_kv=add_bias_kv,
            add_zero_attn=add_zero_attn,
            kdim=kdim,
            vdim=vdim,
            batch_first=batch_first,
            device=device,
            dtype=dtype,
        )
        self._leave_fast_path()
        self.activation = activation

    @classmethod
    def adopt(cls, module: torch.nn.MultiheadAttention, activation: str) -> None:
        """Makes a module of torch one of ours.

        It stays the same object: its parameters, hooks and mode, and whatever
        refers to it, know nothing of the change.
        """
        if type(module) is not torch.nn.MultiheadAttention:
            raise TypeError(
                f"[{_OP}] cannot adopt {type(module).__name__}, expected "
                "torch.nn.MultiheadAttention itself"
            )
        formula = functional.activation(activation).formula
        module.__class__ = cls
        module._leave_fast_path()
        module.activation = formula

    @property
    def activation(self) -> str:
        """The formula, in canonical form. May be assigned to."""
        return self._activation

    @activation.setter
    def activation(self, formula: str) -> None:
        self._activation = functional.activation(formula).formula

    def _leave_fast_path(self) -> None:
        # In eval mode, TransformerEncoderLayer and TransformerEncoder compute
        # softmax attention themselves, without a call of forward, if they see
        # True here. The projections are told apart by in_proj_weight instead.
        self._qkv_same_embed_dim = False

    def _reset_parameters(self) -> None:
        fast = self._qkv_same_embed_dim
        self._qkv_same_embed_dim = self.in_proj_weight is not None
        super()._reset_parameters()
        self._qkv_same_embed_dim = fast

    def extra_repr(self) -> str:
        return (
            f"{self.embed_dim}, heads={self.num_heads}, "
            f"activation={self.activation!r}, batch_first={self.batch_first}"
        )

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Optional[Tensor] = None,
        need_weights: bool = True,
        attn_mask: Optional[Tensor] = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> Tuple[Tensor, Optional[Tensor]]:
        """As torch's, masks included: True (or -inf) hides a key.

        With `is_causal` and an `attn_mask`, the mask is what counts: torch
        calls the former a hint. Without a mask, key j is hidden from query
        i < j.

        The weights that are returned are those of the formula, after dropout;
        they are computed explicitly, so ask for them only where you use them.
        """
        check_inputs(self, query, key, value)
        q, k, v = (self._heads(x) for x in self._project(query, key, value))
        mask, causal = visibility(
            attn_mask=attn_mask,
            key_padding_mask=key_padding_mask,
            is_causal=is_causal,
            scores=(*q.shape[:3], k.shape[2]),
            appended=(self.bias_k is not None) + bool(self.add_zero_attn),
            like=q,
        )
        k, v = self._append_keys(k, v)
        output, weights = self._attend(q, k, v, mask, causal, need_weights)
        output = self.out_proj(self._merge(output, query.dim() == 3))
        if weights is not None:
            weights = weights.mean(dim=1) if average_attn_weights else weights
            weights = weights if query.dim() == 3 else weights.squeeze(0)
        return output, weights

    def _project(
        self, query: Tensor, key: Tensor, value: Tensor
    ) -> Tuple[Tensor, Tensor, Tensor]:
        bias = self.in_proj_bias
        if self.in_proj_weight is not None and query is key and key is value:
            return F.linear(query, self.in_proj_weight, bias).chunk(3, dim=-1)
        if self.in_proj_weight is not None:
            weights = self.in_proj_weight.chunk(3)
        else:
            weights = (self.q_proj_weight, self.k_proj_weight, self.v_proj_weight)
        biases = (None, None, None) if bias is None else bias.chunk(3)
        inputs = (query, key, value)
        return tuple(F.linear(x, w, b) for x, w, b in zip(inputs, weights, biases))

    def _heads(self, x: Tensor) -> Tensor:
        """[L, HD], [B, L, HD] or [L, B, HD] to [B, H, L, D], without a copy."""
        if x.dim() == 2:
            x = x.unsqueeze(0)
        elif not self.batch_first:
            x = x.transpose(0, 1)
        return x.unflatten(-1, (self.num_heads, self.head_dim)).transpose(1, 2)

    def _merge(self, x: Tensor, batched: bool) -> Tensor:
        """The way back."""
        if not batched:
            return x.squeeze(0).transpose(0, 1).flatten(1)
        order = (0, 2, 1, 3) if self.batch_first else (2, 0, 1, 3)
        return x.permute(order).flatten(2)

    def _append_keys(self, k: Tensor, v: Tensor) -> Tuple[Tensor, Tensor]:
        """bias_k and bias_v, then a key and a value of zeros."""
        extra = []
        if self.bias_k is not None:
            shape = (1, self.num_heads, 1, self.head_dim)
            extra.append((self.bias_k.view(shape), self.bias_v.view(shape)))
        if self.add_zero_attn:
            zero = k.new_zeros(1, 1, 1, 1)
            extra.append((zero, zero))
        for key, value in extra:
            shape = (k.shape[0], self.num_heads, 1, self.head_dim)
            k = torch.cat([k, key.to(k.dtype).expand(shape)], dim=2)
            v = torch.cat([v, value.to(v.dtype).expand(shape)], dim=2)
        return k, v

    def _attend(
        self,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        mask: Optional[Tensor],
        causal: bool,
        need_weights: bool,
    ) -> Tuple[Tensor, Optional[Tensor]]:
        dropout = self.dropout if self.training else 0.0
        if self._before_weights is not None:
            q = self._before_weights(q, k, mask, causal)

        def attend(values: Tensor) -> Tensor:
            return functional.attention(
                q, k, values, mask, dropout, causal, activation=self.activation
            )

        if not need_weights:
            return attend(v), None
        # The weights are the output for values that are the unit vectors.
        keys = k.shape[2]
        unit = torch.eye(keys, device=v.device).to(v.dtype)
        weights = attend(unit.expand(*v.shape[:2], keys, keys))
        return weights @ v, weights
