"""The matched start: first scores at which an activation has softmax's norm."""

from __future__ import annotations

from numbers import Real
from typing import NamedTuple, Optional

import torch

from ._errors import check_type


class MatchedGain(NamedTuple):
    """What takes the first scores to where the activation has softmax's norm."""

    gain: float
    """For the weights of q and of k, each. At most 1."""
    scale: float
    """The standard deviation of scores that it gives."""
    norm: Optional[float]
    """Root mean square of ||A||_F at that scale; None if unknown, with /sum."""
    softmax_norm: float
    """The same of softmax, at the same scale."""
    reason: Optional[str]
    """Why nothing changes, if the gain is 1."""


def matched_gain(
    activation: str,
    tokens: int,
    *,
    causal: bool = False,
    score_std: float = 1.0,
    factor: float = 1.0,
) -> MatchedGain:
    """How much smaller the first weights of q and k should be.

    The largest scale s of at most `score_std` at which the root mean square of
    ||A||_F is `factor` times that of softmax, both for independent scores
    N(0, s^2). Scores only ever shrink: where the norm is not above that target,
    or above it at every smaller scale too, the gain is 1 and `reason` says why.
    Real heads scatter around the expectation.

    >>> match = polyattn.matched_gain("x^3/sqrt(N)", 64)
    >>> round(match.gain, 3), round(match.scale, 3)
    (0.569, 0.324)
    >>> polyattn.matched_gain("x/N", 64).reason
    'its norm is not above the target'

    Args:
        activation: a formula.
        tokens: N, how many keys a row sees.
        causal: norms are those of the last row, which sees N keys; the scale is
            the same.
        score_std: standard deviation of the scores as they are.
        factor: of the target.
    """
    check_type("matched_gain", "activation", activation, str)
    check_type("matched_gain", "tokens", tokens, int)
    check_type("matched_gain", "score_std", score_std, Real)
    check_type("matched_gain", "factor", factor, Real)
    try:
        result = torch.ops.polyattn.matched_gain(
            activation, tokens, bool(causal), float(score_std), float(factor)
        )
    except RuntimeError as error:
        raise ValueError(str(error)) from None
    return MatchedGain(*result)
