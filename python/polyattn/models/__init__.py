"""Models: the twins of those in C++, with the same names of parameters."""

from .classifier import SequenceClassifier
from .gpt import Gpt
from .vit import ViT, pixel_statistics

__all__ = ["Gpt", "SequenceClassifier", "ViT", "pixel_statistics"]
