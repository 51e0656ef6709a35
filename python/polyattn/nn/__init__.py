"""Modules."""

from .attention import Attention
from .cross_covariance import ClassAttention, CrossCovariance
from .multihead import MultiheadAttention
from .nystrom import NystromAttention
from .rotary import Rotary
from .window_attention import WindowAttention

__all__ = [
    "Attention",
    "ClassAttention",
    "CrossCovariance",
    "MultiheadAttention",
    "NystromAttention",
    "Rotary",
    "WindowAttention",
]
