"""First scores that are small enough for attention without softmax."""

from __future__ import annotations

import contextlib
import math
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Tuple

import torch
from torch import Tensor

from . import functional, nn
from ._errors import check_type

_LOWEST = -16.0
_TOLERANCE = 1e-4
_MOST_CALLS = 60
_CAUSAL_SHARE = 8


@dataclass(frozen=True)
class HeadStart:
    """One head: norms are ||A||_F, means over the batch; of causal attention
    those of its last rows."""

    gain: float
    """Of the scores, at most 1."""
    before: float
    """The norm as it was."""
    after: float
    """And as it is."""
    softmax: float
    """What softmax has on the scores as they are now."""


@dataclass
class MatchReport:
    """What match_start did: heads by the name of their module."""

    factor: float
    layers: Dict[str, List[HeadStart]] = field(default_factory=dict)

    def __str__(self) -> str:
        lines = [f"norms of the weights, {self.factor:g} of softmax's wanted:"]
        for name, heads in self.layers.items():
            lines += [
                f"  {name or '(the model itself)'} head {i}: {h.before:.4g} -> "
                f"{h.after:.4g}, softmax {h.softmax:.4g} (scores x {h.gain:.3g})"
                for i, h in enumerate(heads)
            ]
        return "\n".join(lines)


def match_start(
    model: torch.nn.Module, batch: Any, *, factor: float = 1.0
) -> MatchReport:
    """Shrinks the scores of each attention head until ||A||_F is softmax's.

    A power of scores of size one is large, and such a model trains badly: this
    runs the model once on a batch and, layer by layer, gives each head of q and
    k the gain at which its norm is `factor` times that of softmax on the same
    scores. Scores never grow: heads that are below already stay, and so do
    those that no scale brings there. softmax itself is left alone. A BatchNorm
    that has seen no batch yet computes by this one, as in training, and forgets it.

    >>> layer = polyattn.nn.Attention(64, 4, activation="x^3/sqrt(N)")
    >>> report = polyattn.match_start(layer, torch.randn(8, 50, 64))
    >>> round(report.layers[""][0].after / report.layers[""][0].softmax, 3)
    1.0

    Args:
        model: with attention of polyattn inside (what replace_softmax puts there,
            and that of polyattn.nn and polyattn.timm), whose projections (or
            learned scales) are changed in place.
        batch: what the model is called with: a tensor, a tuple of arguments, a
            mapping of keyword arguments, or a function without arguments that
            calls the model.
        factor: of softmax's norm.
    """
    check_type("match_start", "model", model, torch.nn.Module)
    if not (factor > 0 and math.isfinite(factor)):
        raise ValueError(f"[match_start] factor {factor} is no finite number above 0")
    report = MatchReport(factor)
    layers = [
        (name, module)
        for name, module in model.named_modules()
        if hasattr(module, "_before_weights")
        and module.activation != "softmax"
    ]
    training = model.training
    try:
        for name, module in layers:
            module._before_weights = _Matcher(name, module, report)
        model.eval()
        with torch.no_grad(), _batch_statistics(model):
            _call(model, batch)
    finally:
        model.train(training)
        for _, module in layers:
            module._before_weights = None
    return report


@contextlib.contextmanager
def _batch_statistics(model: torch.nn.Module) -> Iterator[None]:
    """BatchNorms that have seen nothing compute by the batch, as in training, and
    forget it again."""
    kept = []
    for norm in model.modules():
        if isinstance(norm, torch.nn.modules.batchnorm._BatchNorm):
            seen = norm.num_batches_tracked
            if seen is not None and seen == 0:
                kept.append((norm, {k: v.clone() for k, v in norm.named_buffers()}))
                norm.train()
    try:
        yield
    finally:
        for norm, buffers in kept:
            for name, value in buffers.items():
                getattr(norm, name).copy_(value)
            norm.eval()


def _call(model: torch.nn.Module, batch: Any) -> None:
    if isinstance(batch, Tensor):
        model(batch)
    elif isinstance(batch, Mapping):
        model(**batch)
    elif isinstance(batch, (tuple, list)):
        model(*batch)
    elif callable(batch):
        batch()
    else:
        raise TypeError(
            f"[match_start] batch is {type(batch).__name__}, expected a tensor, a "
            "tuple, a mapping or a function"
        )


class _Matcher:
    """What a module calls with its queries and keys, once."""

    def __init__(self, name: str, module: Any, report: MatchReport) -> None:
        self.name, self.module, self.report = name, module, report

    def __call__(
        self, q: Tensor, k: Tensor, mask: Optional[Tensor], causal: bool, **call: Any
    ) -> Tensor:
        if self.name in self.report.layers:  # a layer that runs twice
            return q
        if causal and mask is None:
            rows = -(-q.shape[-2] // _CAUSAL_SHARE)
            call.update(causal_alignment="lower_right")
            measured = q[..., -rows:, :]
        else:
            measured = q

        def norms(gain: Tensor, **other: Any) -> Tensor:
            options = {**call, "activation": self.module.activation, **other}
            scaled = measured * gain.to(q.dtype)[:, None, None]
            weight = self._weight_norms(scaled, k, mask, causal, options)
            return weight.double().flatten(0, -2).mean(0).cpu()

        def both(gain: Tensor) -> Tuple[Tensor, Tensor]:
            alone = {"coefficients": None, "log_decay": None}
            return norms(gain), norms(gain, activation="softmax", **alone)

        def excess(log_gain: Tensor) -> Tensor:
            own, softmax = both(log_gain.exp())
            return own.log() - (self.report.factor * softmax).log()

        ones = torch.ones(q.shape[-3], dtype=torch.float64)
        before, softmax = both(ones)
        if not (before.isfinite().all() and softmax.isfinite().all()):
            raise ValueError(
                f"[match_start] {self.name or 'the model'}: the norms of the attention "
                "weights are not finite: are inputs and weights?"
            )
        gain = _roots_below_zero(excess, ones * 0).exp()
        gain = _apply(self.module, gain)
        after, softmax = both(gain)
        self.report.layers[self.name] = [
            HeadStart(*values)
            for values in zip(*(t.tolist() for t in (gain, before, after, softmax)))
        ]
        return q * gain.to(q.dtype)[:, None, None]

    def _weight_norms(
        self,
        q: Tensor,
        k: Tensor,
        mask: Optional[Tensor],
        causal: bool,
        options: Dict[str, Any],
    ) -> Tensor:
        if isinstance(self.module, nn.NystromAttention):
            options.pop("coefficients", None)
            return self.module.weight_norms(q, k, mask, **options)
        _, found = functional.attention(
            q, k, k[..., :1], mask, 0.0, causal, return_norms=True, **options
        )
        return found.weight


def _roots_below_zero(f: Callable[[Tensor], Tensor], zero: Tensor) -> Tensor:
    """For each function that is above zero at 0, where below it is zero; 0 for
    the others and for those without a root. Walks down, then false position,
    which halves the value at an end that stays (Illinois)."""
    place, high, low = zero.clone(), zero.clone(), zero.clone()
    high_value = f(zero)
    low_value = torch.zeros_like(zero)
    bracketed = torch.zeros_like(zero, dtype=torch.bool)
    kept = torch.zeros_like(zero)  # -1, 1: the end that stayed last time
    done = high_value <= _TOLERANCE
    for _ in range(_MOST_CALLS):
        if bool(done.all()):
            break
        walk = (high - high_value.clamp(0.25, 2.0)).clamp(min=_LOWEST)
        share = high_value / (high_value - low_value)
        place = torch.where(
            done, place, torch.where(bracketed, high + share * (low - high), walk)
        )
        value = f(place)
        found = value.abs() <= _TOLERANCE
        lost = ~found & (value > 0) & ~bracketed & (place <= _LOWEST)
        up = ~done & ~found & (value > 0)
        down = ~done & ~found & (value <= 0)
        low_value = torch.where(up & (kept == -1), low_value / 2, low_value)
        high_value = torch.where(down & (kept == 1), high_value / 2, high_value)
        kept = torch.where(up & bracketed, -1.0, torch.where(down, 1.0, kept))
        high = torch.where(up, place, high)
        high_value = torch.where(up, value, high_value)
        low = torch.where(down, place, low)
        low_value = torch.where(down, value, low_value)
        bracketed |= down
        place = torch.where(~done & lost, zero, place)
        done |= found | lost
    return place


def _apply(module: Any, gain: Tensor) -> Tensor:
    """Puts the gains where the module keeps them; what became of them."""
    scale = getattr(module, "score_scale", None)
    if scale is not None:
        scale.mul_(gain.to(scale))
        return gain
    if hasattr(module, "scale_scores") and module.scale_scores(gain):
        return gain
    if getattr(getattr(module, "q_norm", None), "weight", None) is not None:
        part = gain.log().mean().div(2).exp()
        for norm in (module.q_norm, module.k_norm):
            for values in norm.parameters():
                values.mul_(part.to(values))
        return torch.full_like(gain, float(part) ** 2)
    groups = getattr(module, "kv_heads", gain.shape[0])
    of_k = gain.log().view(groups, -1).mean(1).div(2).exp()
    of_q = gain / of_k.repeat_interleave(gain.shape[0] // groups)
    for rows, factors in zip(_rows_of_q_and_k(module, groups), (of_q, of_k)):
        for part in rows:
            by_row = factors.to(part).repeat_interleave(module.head_dim)
            part.mul_(by_row.view((-1,) + (1,) * (part.dim() - 1)))
    return gain


def _rows_of_q_and_k(module: Any, groups: int) -> Tuple[List[Tensor], List[Tensor]]:
    """Views of weights and biases."""
    heads = getattr(module, "heads", None) or module.num_heads
    sizes = [heads * module.head_dim, groups * module.head_dim]
    packed = [p for p in (module.in_proj_weight, module.in_proj_bias) if p is not None]
    parts = [p.split(sizes + [p.shape[0] - sum(sizes)]) for p in packed]
    q, k = [p[0] for p in parts], [p[1] for p in parts]
    if module.in_proj_weight is None:
        q.append(module.q_proj_weight)
        k.append(module.k_proj_weight)
    return q, k
