"""Multi-head attention with projections, for any activation."""

from __future__ import annotations

import math
from typing import Any, Callable, Optional, Tuple, Union

import torch
import torch.nn.functional as F
from torch import Tensor

from .. import functional
from .center import center_values as centered
from .checks import (
    check_context,
    check_decay,
    check_norms,
    check_rows,
    check_short_conv,
    check_sizes,
    check_window,
    coefficient_kind,
)
from .norm import Norm
from .rotary import Rotary
from .short_conv import ShortConv

_OP = "Attention"
_FIRST_GATE = 0.999  # of decay


class Attention(torch.nn.Module):
    """[B, N, C] -> [B, N, C], for self-attention and cross-attention.

    The twin of polyattn::nn::Attention in C++: names, shapes and meaning of the
    parameters are the same, so that a state dict goes either way. They are
    those of torch.nn.MultiheadAttention where it has them: in_proj_weight
    [(H + 2G) D, C] with the rows of q, k and v in this order, in_proj_bias,
    out_proj.weight, out_proj.bias; and where asked for q_norm.weight and
    k_norm.weight [D], score_scale [H], coefficients [P + 1] or [H, P + 1],
    output_norm.weight [D], gate_proj.weight [H D, C], gate_proj.bias,
    short_conv.weight [(H + 2G) D, 1, width], or [G D, 1, 3, 3] on a grid,
    hybrid_gate [H]; log_decay_rate [G], or decay_proj.weight [G, C] and
    decay_proj.bias [G].

    >>> attention = polyattn.nn.Attention(64, 4, activation="x^3/sqrt(N)", causal=True)
    >>> attention(torch.randn(2, 10, 64)).shape
    torch.Size([2, 10, 64])

    Args:
        dim: C, the width of the rows.
        heads: H.
        kv_heads: G, of which H is a multiple; default H.
        head_dim: D; default C / H.
        activation: a formula, as polyattn.attention takes.
        bias: of the projections.
        dropout: of the attention weights, in training.
        projection_dropout: of the output, in training.
        causal: a row sees itself and those before it.
        qk_norm: of each row of q and k: None, "layer" (without bias) or "rms".
        learned_scale: a factor of the scores for each head, 1/sqrt(D) at first.
        learned_coefficients: of a polynomial: "shared" (or True), one set for
            all heads, or "head", one for each.
        rotary: a polyattn.nn.Rotary, or True for its defaults.
        output_norm: of each head's row of the output: None or "rms".
        output_gate: multiply the output, after its norm, by
            sigmoid(gate_proj(x)).
        center_values: A (V - m) + m in place of A V, m the mean of the values
            that the row sees: as if the rows of A summed to 1.
        short_conv: the width of a convolution of each channel of q, k and v
            over the rows before, ahead of norms and rotation; 0: none.
        grid: (height, width), if rows are patches of a picture, line by line,
            after a class token or none. short_conv is 0 or 3 then: a window of
            3 x 3 on v alone.
        window: 0, or how near softmax sees: if causal the last `window` rows,
            its own included, if not `window` rows on each side. Any other
            activation stands beside softmax in such a window: O = window softmax
            + hybrid_gate_h * what the activation gives over all rows, whose
            norms are those that are returned.
        decay: of a causal polynomial, the factors by which each key fades what
            is before it: None; "head", a learned number for each key head,
            exp(-exp(log_decay_rate)), at first 1 - 2^-5 to 1 - 2^-12; or
            "gate", one for each token, exp(-softplus(decay_proj(x))), at first
            0.999.
    """

    score_scale: Optional[Tensor]
    coefficients: Optional[Tensor]
    hybrid_gate: Optional[Tensor]
    _before_weights: Optional[Callable[..., Tensor]] = None  # of match_start

    def __init__(
        self,
        dim: int,
        heads: int,
        kv_heads: Optional[int] = None,
        head_dim: Optional[int] = None,
        *,
        activation: str = "softmax",
        bias: bool = True,
        dropout: float = 0.0,
        projection_dropout: float = 0.0,
        causal: bool = False,
        qk_norm: Optional[str] = None,
        learned_scale: bool = False,
        learned_coefficients: Union[bool, str] = False,
        rotary: Union[bool, Rotary] = False,
        output_norm: Optional[str] = None,
        output_gate: bool = False,
        center_values: bool = False,
        short_conv: int = 0,
        grid: Optional[Tuple[int, int]] = None,
        window: int = 0,
        decay: Optional[str] = None,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.dim, self.heads = dim, heads
        self.kv_heads = heads if kv_heads is None else kv_heads
        check_sizes(dim, heads, self.kv_heads, head_dim)
        check_norms(qk_norm, output_norm)
        check_short_conv(short_conv, grid, causal)
        self.head_dim = dim // heads if head_dim is None else head_dim
        self.dropout, self.projection_dropout = dropout, projection_dropout
        self.causal, self.center_values = causal, center_values
        self.rotary = Rotary() if rotary is True else rotary or None
        if self.rotary is not None:
            self.rotary.check(self.head_dim)
        self._activation = functional.activation(activation).formula
        self._learned = coefficient_kind(learned_coefficients)
        check_window(window)
        self.window = window

        place = {"device": device, "dtype": dtype}
        rows = (heads + 2 * self.kv_heads) * self.head_dim
        self.in_proj_weight = torch.nn.Parameter(torch.empty(rows, dim, **place))
        self.in_proj_bias = (
            torch.nn.Parameter(torch.empty(rows, **place)) if bias else None
        )
        self.out_proj = torch.nn.Linear(
            heads * self.head_dim, dim, bias=bias, **place
        )
        self.gate_proj = (
            torch.nn.Linear(dim, heads * self.head_dim, bias=bias, **place)
            if output_gate
            else None
        )
        self._add_norms(qk_norm, output_norm, place)
        self._add_short_conv(short_conv, grid, place)
        self._add_learned(learned_scale, place)
        self._add_decay(decay, place)
        self.reset_parameters()

    def _add_norms(
        self, qk_norm: Optional[str], output_norm: Optional[str], place: dict
    ) -> None:
        kinds = {"q_norm": qk_norm, "k_norm": qk_norm, "output_norm": output_norm}
        for name, kind in kinds.items():
            norm = None if kind is None else Norm(self.head_dim, kind, **place)
            self.add_module(name, norm)

    def _add_short_conv(
        self, width: int, grid: Optional[Tuple[int, int]], place: dict
    ) -> None:
        self.grid = grid if width > 0 else None
        rows = self.in_proj_weight.shape[0]
        channels = rows if grid is None else self.kv_heads * self.head_dim
        self.short_conv = (
            ShortConv(channels, width, grid, **place) if width > 0 else None
        )

    def _add_learned(self, learned_scale: bool, place: dict) -> None:
        scale = torch.empty(self.heads, **place) if learned_scale else None
        self.score_scale = None if scale is None else torch.nn.Parameter(scale)
        hybrid = self.window > 0 and self._activation != "softmax"
        gate = torch.empty(self.heads, **place) if hybrid else None
        self.hybrid_gate = None if gate is None else torch.nn.Parameter(gate)
        if self._learned is None:
            self.coefficients = None
            return
        known = functional.activation(self._activation).coefficients
        if known is None:
            raise ValueError(
                f"[{_OP}] learned_coefficients are for polynomials, not for "
                f"{self._activation}"
            )
        shape = (len(known),) if self._learned == "shared" else (self.heads, len(known))
        self.coefficients = torch.nn.Parameter(torch.empty(shape, **place))

    def _add_decay(self, kind: Optional[str], place: dict) -> None:
        check_decay(
            kind,
            causal=self.causal,
            polynomial=functional.activation(self._activation).coefficients
            is not None,
            formula=self._activation,
            center_values=self.center_values,
            dropout=self.dropout,
        )
        self.decay = None if kind == "none" else kind
        rate = torch.empty(self.kv_heads, **place) if kind == "head" else None
        self.log_decay_rate = None if rate is None else torch.nn.Parameter(rate)
        self.decay_proj = (
            torch.nn.Linear(self.dim, self.kv_heads, **place)
            if kind == "gate"
            else None
        )

    def _reset_decay(self) -> None:
        if self.log_decay_rate is not None:
            heads = self.kv_heads
            step = 7 / (heads - 1) if heads > 8 else 1.0
            exponent = 5 + step * torch.arange(heads, dtype=torch.float64)
            self.log_decay_rate.copy_((-torch.log1p(-torch.exp2(-exponent))).log())
        if self.decay_proj is not None:
            self.decay_proj.weight.zero_()
            self.decay_proj.bias.fill_(math.log(1 / _FIRST_GATE - 1))

    def log_decay(self, x: Tensor) -> Optional[Tensor]:
        """Of the rows x [B, N, C]: [G, 1] or [B, G, N], as polyattn.attention
        takes it; None without decay."""
        if self.log_decay_rate is not None:
            return -self.log_decay_rate.exp().unsqueeze(1)
        if self.decay_proj is None:
            return None
        return -F.softplus(self.decay_proj(x)).transpose(1, 2)

    def reset_parameters(self) -> None:
        """q, k and v uniform by Glorot and Bengio, as torch does it for its
        packed projection; biases zero; the rest at its neutral value."""
        torch.nn.init.xavier_uniform_(self.in_proj_weight)
        self.out_proj.reset_parameters()
        if self.in_proj_bias is not None:
            torch.nn.init.zeros_(self.in_proj_bias)
            torch.nn.init.zeros_(self.out_proj.bias)
        if self.gate_proj is not None:
            self.gate_proj.reset_parameters()
            if self.gate_proj.bias is not None:
                torch.nn.init.zeros_(self.gate_proj.bias)
        for norm in (self.q_norm, self.k_norm, self.output_norm):
            if norm is not None:
                torch.nn.init.ones_(norm.weight)
        if self.short_conv is not None:
            self.short_conv.reset_parameters()
        with torch.no_grad():
            self._reset_decay()
            if self.score_scale is not None:
                self.score_scale.fill_(1 / math.sqrt(self.head_dim))
            if self.hybrid_gate is not None:
                self.hybrid_gate.fill_(1)
            if self.coefficients is not None:
                known = functional.activation(self._activation).coefficients
                self.coefficients.copy_(torch.tensor(known, dtype=torch.float64))

    @property
    def activation(self) -> str:
        """The formula, in canonical form. May be assigned to, unless its
        coefficients are learned."""
        return self._activation

    @activation.setter
    def activation(self, formula: str) -> None:
        formula = functional.activation(formula).formula
        if self.coefficients is not None:
            raise ValueError(
                f"[{_OP}] the coefficients of {self._activation} are learned: "
                f"it cannot become {formula}"
            )
        if self.window > 0 and (formula == "softmax") != (self.hybrid_gate is None):
            raise ValueError(
                f"[{_OP}] {self._activation} with window {self.window} cannot become "
                f"{formula}: softmax stands alone in the window, the others have a "
                "hybrid_gate"
            )
        self._activation = formula

    def extra_repr(self) -> str:
        text = f"{self.dim}, heads={self.heads}, activation={self.activation!r}"
        if self.kv_heads != self.heads:
            text += f", kv_heads={self.kv_heads}"
        if self.causal:
            text += ", causal=True"
        return text + (f", rotary={self.rotary}" if self.rotary else "")

    def forward(
        self,
        x: Tensor,
        context: Optional[Tensor] = None,
        attn_mask: Optional[Tensor] = None,
    ) -> Tensor:
        """Queries of x [B, N, C]; keys and values of the context [B, M, C], or
        of x without one. The mask is that of polyattn.attention: True where a
        row may see a key, or a number to be added."""
        return self._forward(x, context, attn_mask, return_norms=False)

    def forward_with_norms(
        self,
        x: Tensor,
        context: Optional[Tensor] = None,
        attn_mask: Optional[Tensor] = None,
    ) -> Tuple[Tensor, functional.AttentionNorms]:
        """The same, with the norms of the attention matrices, each [B, H]."""
        return self._forward(x, context, attn_mask, return_norms=True)

    def _forward(
        self,
        x: Tensor,
        context: Optional[Tensor],
        attn_mask: Optional[Tensor],
        return_norms: bool,
    ) -> Any:
        q, k, v = self._project(x, context)
        own, slides = v, self.window > 0 and self.hybrid_gate is None
        # Rows of softmax sum to 1: there is nothing to centre in a window.
        centers = self.center_values and not slides
        if centers:
            v, uncenter = centered(v, attn_mask, self.causal)
        scores = {
            "scale": None if self.score_scale is None else 1.0,
            "enable_gqa": True,
            "coefficients": self.coefficients,
            "log_decay": self.log_decay(x),
        }
        if self._before_weights is not None:
            q = self._before_weights(q, k, attn_mask, self.causal, **scores)
        result = functional.attention(
            q,
            k,
            v,
            attn_mask,
            self.dropout if self.training else 0.0,
            self.causal,
            activation=self.activation,
            return_norms=return_norms,
            window_size=self._window_size() if slides else functional.NO_WINDOW,
            **scores,
        )
        o, norms = result if return_norms else (result, None)
        if centers:
            o = uncenter(o)
        if self.hybrid_gate is not None:
            near = functional.attention(
                q,
                k,
                own,
                attn_mask,
                self.dropout if self.training else 0.0,
                self.causal,
                scale=scores["scale"],
                enable_gqa=True,
                window_size=self._window_size(),
            )
            o = near + (self.hybrid_gate[:, None, None] * o).to(near.dtype)
        y = self._project_out(x, o)
        y = F.dropout(y, self.projection_dropout, self.training)
        return (y, norms) if return_norms else y

    def _window_size(self) -> functional.WindowSize:
        return (self.window - 1, 0) if self.causal else (self.window, self.window)

    def _project_out(self, x: Tensor, o: Tensor) -> Tensor:
        """o [B, H, N, D], of the rows x -> [B, N, C]."""
        o = o.transpose(1, 2)
        if self.output_norm is not None:
            o = self.output_norm(o)
        o = o.flatten(2)
        if self.gate_proj is not None:
            o = o * torch.sigmoid(self.gate_proj(x))
        return self.out_proj(o)

    def _project(
        self, x: Tensor, context: Optional[Tensor]
    ) -> Tuple[Tensor, Tensor, Tensor]:
        """[B, H, N, D], [B, G, M, D], [B, G, M, D]."""
        check_rows("x", x, self.dim)
        sizes = [n * self.head_dim for n in (self.heads, self.kv_heads, self.kv_heads)]
        weight, bias = self.in_proj_weight, self.in_proj_bias
        if context is None:
            rows = F.linear(x, weight, bias)
            if self.short_conv is not None and self.grid is None:
                rows = self.short_conv(rows)
            q, k, v = rows.split(sizes, dim=-1)
            if self.grid is not None:
                v = self.short_conv(v)
        else:
            check_rows("context", context, self.dim)
            check_context(
                causal=self.causal,
                rotary=self.rotary is not None,
                short_conv=self.short_conv is not None,
                window=self.window > 0,
            )
            two = [sizes[0], sizes[1] + sizes[2]]
            weights = weight.split(two)
            biases = (None, None) if bias is None else bias.split(two)
            q = F.linear(x, weights[0], biases[0])
            k, v = F.linear(context, weights[1], biases[1]).split(sizes[1:], dim=-1)
        q, k, v = (
            t.unflatten(-1, (-1, self.head_dim)).transpose(1, 2) for t in (q, k, v)
        )
        # Under autocast the parameters are wider than the rows.
        return self._turn(q, k, v.dtype) + (v,)

    def _turn(self, q: Tensor, k: Tensor, dtype: torch.dtype) -> Tuple[Tensor, Tensor]:
        if self.q_norm is not None:
            q, k = self.q_norm(q), self.k_norm(k)
        if self.rotary is not None:
            q, k = self.rotary.rotate(q), self.rotary.rotate(k)
        if self.score_scale is not None:
            q = q * self.score_scale[:, None, None]
        return q.to(dtype), k.to(dtype)
