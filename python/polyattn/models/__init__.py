"""Models: the twins of those in C++, with the same names of parameters."""

from .classifier import SequenceClassifier
from .gpt import Gpt
from .image import pixel_statistics
from .swin import Swin
from .vit import ViT
from .xcit import XCiT

__all__ = ["Gpt", "SequenceClassifier", "Swin", "ViT", "XCiT", "pixel_statistics"]
