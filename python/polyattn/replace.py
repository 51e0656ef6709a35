"""Another activation for the attention inside an existing model."""

from __future__ import annotations

import copy
import fnmatch
import re
from typing import Any, Callable, Iterator, List, Optional, Sequence, Tuple, Union

import torch

from . import nn, timm
from .functional import activation as read_activation
from .match import match_start
from .report import Kept, ReplaceReport, Swap

Pattern = Union[str, "re.Pattern[str]"]
Selection = Union[Pattern, Sequence[Pattern], Callable[[str, torch.nn.Module], bool]]

_LOOKS_FOR = (
    "torch.nn.MultiheadAttention (as in torch.nn.Transformer* and torchvision's "
    "VisionTransformer), the windowed attention of torchvision's SwinTransformer, and "
    "the attention of polyattn.nn and polyattn.timm"
)

# Modules whose formula can be assigned to.
_OURS = (
    nn.Attention,
    nn.ClassAttention,
    nn.CrossCovariance,
    nn.MultiheadAttention,
    nn.WindowAttention,
    timm.Attention,
)


def replace_softmax(
    model: torch.nn.Module,
    activation: str,
    *,
    only: Optional[Selection] = None,
    skip: Optional[Selection] = None,
    inplace: bool = True,
    match: Any = None,
    match_factor: float = 1.0,
) -> ReplaceReport:
    """Gives every attention module inside the model another activation.

    Each torch.nn.MultiheadAttention becomes a polyattn.nn.MultiheadAttention, each
    windowed attention of torchvision's Swin one of polyattn.torchvision, and stays
    the same object with the same parameters, so optimisers, hooks and references to
    it stay valid. Modules of polyattn get the new activation; "softmax" leads back
    to the numbers of the original.

    >>> model = torchvision.models.vit_b_16()
    >>> print(polyattn.replace_softmax(model, "x^3/sqrt(N)"))

    Args:
        model: is changed, unless `inplace` is False.
        activation: a formula, as polyattn.attention takes.
        only: which modules: a name pattern such as "encoder.layers.*", a
            compiled regular expression that is searched in the name, a list of
            these, or a function of name and module.
        skip: which modules not, in the same manner.
        inplace: False changes a copy of the model, which is `report.model`.
        match: a batch, as polyattn.match_start takes: the scores of each head
            are then shrunk until its norm is softmax's, and the report says
            what it was before and after.
        match_factor: of softmax's norm.

    Returns:
        What was changed, and what looked like attention but was not. Raises
        ValueError if nothing was.
    """
    formula = read_activation(activation).formula
    if not inplace:
        model = copy.deepcopy(model)
    report = ReplaceReport(model, formula)
    chosen = []
    for name, module in _attention_modules(model):
        reason = _why_not(name, module, only, skip)
        if reason is None:
            chosen.append((name, module))
        else:
            report.kept.append(Kept(name, type(module).__name__, reason))
    if not chosen:
        raise ValueError(_nothing(model, report.kept))
    report.swapped += [_swap(name, module, formula) for name, module in chosen]
    _refuse_nested_tensors(model)
    if match is not None:
        report.start = match_start(model, match, factor=match_factor)
    return report


def _attention_modules(
    model: torch.nn.Module,
) -> Iterator[Tuple[str, torch.nn.Module]]:
    """Modules that we know, and innermost ones that are called attention."""
    for name, module in model.named_modules():
        if _is_known(module):
            yield name, module
        elif _is_called_attention(module):
            inner = list(module.modules())[1:]
            if not any(_is_known(m) or _is_called_attention(m) for m in inner):
                yield name, module


def _is_known(module: torch.nn.Module) -> bool:
    return isinstance(module, (torch.nn.MultiheadAttention, *_OURS)) or _is_swin(module)


def _is_swin(module: torch.nn.Module) -> bool:
    """One of torchvision's own, or of ours; torchvision need not be there."""
    names = ("ShiftedWindowAttention", "ShiftedWindowAttentionV2")
    rooms = ("torchvision.models.swin_transformer", "polyattn.torchvision")
    return type(module).__name__ in names and type(module).__module__ in rooms


def _is_called_attention(module: torch.nn.Module) -> bool:
    return "attention" in type(module).__name__.lower()


def _why_not(
    name: str,
    module: torch.nn.Module,
    only: Optional[Selection],
    skip: Optional[Selection],
) -> Optional[str]:
    """Why the module is left as it is; None if it is to be changed."""
    if only is not None and not _selected(only, name, module):
        return "not among `only`"
    if skip is not None and _selected(skip, name, module):
        return "among `skip`"
    if isinstance(module, nn.Attention):
        learned = module.coefficients is not None
        return "its coefficients are learned" if learned else None
    if type(module) in (torch.nn.MultiheadAttention, *_OURS) or _is_swin(module):
        return None
    if isinstance(module, torch.nn.MultiheadAttention):
        return "a subclass of MultiheadAttention may do anything"
    return "computes its weights itself: call polyattn.attention there"


def _selected(selection: Selection, name: str, module: torch.nn.Module) -> bool:
    if callable(selection):
        return bool(selection(name, module))
    single = isinstance(selection, (str, re.Pattern))
    patterns: Sequence[Pattern] = [selection] if single else selection  # type: ignore
    for pattern in patterns:
        if isinstance(pattern, str):
            if fnmatch.fnmatchcase(name, pattern):
                return True
        elif isinstance(pattern, re.Pattern):
            if pattern.search(name):
                return True
        else:
            raise TypeError(
                f"[replace_softmax] a pattern is {type(pattern).__name__}, expected "
                "str or a compiled regular expression"
            )
    return False


def _swap(name: str, module: torch.nn.Module, formula: str) -> Swap:
    kind = type(module).__name__
    heads: int = getattr(module, "heads", None) or module.num_heads  # type: ignore
    old = getattr(module, "activation", "softmax")
    if hasattr(module, "activation"):
        module.activation = formula
    elif _is_swin(module):
        from . import torchvision

        torchvision.adopt(module, formula)
    else:
        nn.MultiheadAttention.adopt(module, formula)
    return Swap(name, kind, heads, old, formula)


def _refuse_nested_tensors(model: torch.nn.Module) -> None:
    """In eval mode, TransformerEncoder would pack a padded batch into a nested
    tensor, which only its own softmax can take. torch 2 decides this in the
    constructor and keeps the decision in use_nested_tensor."""
    for module in model.modules():
        if not isinstance(module, torch.nn.TransformerEncoder):
            continue
        if any(isinstance(m, nn.MultiheadAttention) for m in module.modules()):
            module.enable_nested_tensor = False
            if hasattr(module, "use_nested_tensor"):
                module.use_nested_tensor = False


def _nothing(model: torch.nn.Module, kept: List[Kept]) -> str:
    message = (
        f"[replace_softmax] nothing to replace in {type(model).__name__}: it looks "
        f"for {_LOOKS_FOR}"
    )
    if kept:
        message += ". What it found:\n" + "\n".join(f"  {k}" for k in kept)
    return message
