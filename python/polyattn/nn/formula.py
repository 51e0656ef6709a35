"""What every attention says of its activation."""

from __future__ import annotations

from typing import Callable, Optional

from torch import Tensor

from .. import functional


class Formula:
    """A module whose activation may be assigned to."""

    _before_weights: Optional[Callable[..., Tensor]] = None  # of match_start

    @property
    def activation(self) -> str:
        """The formula, in canonical form. May be assigned to."""
        return self._activation

    @activation.setter
    def activation(self, formula: str) -> None:
        self._activation = functional.activation(formula).formula
