"""Errors as a Python user wants to see them."""

from __future__ import annotations

from typing import Any


def check_type(op: str, name: str, value: Any, *kinds: type) -> None:
    """TypeError unless the value is of one of the kinds."""
    if not isinstance(value, kinds):
        wanted = " or ".join(
            "None" if kind is type(None) else kind.__name__ for kind in kinds
        )
        raise TypeError(f"[{op}] {name} is {type(value).__name__}, expected {wanted}")
