"""Modules."""

from .attention import Attention
from .multihead import MultiheadAttention
from .rotary import Rotary

__all__ = ["Attention", "MultiheadAttention", "Rotary"]
