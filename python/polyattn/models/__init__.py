"""Models: the twins of those in C++, with the same names of parameters."""

from .classifier import SequenceClassifier
from .gpt import Gpt
from .image import pixel_statistics
from .vit import ViT

__all__ = ["Gpt", "SequenceClassifier", "ViT", "pixel_statistics"]
