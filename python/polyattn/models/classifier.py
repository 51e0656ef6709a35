"""Classifier of sequences of different lengths, which sees no padding."""

from __future__ import annotations

from typing import Any, Optional

import torch
import torch.nn.functional as F
from torch import Tensor

from .block import make_blocks, make_norm
from .embedding import ClassToken, PositionEmbedding, TokenEmbedding, initialise_vit
from .gpt import check_context, rotary_of

_OP = "SequenceClassifier"


class SequenceClassifier(torch.nn.Module):
    """Tokens [B, N] and lengths [B] -> logits [B, classes].

    The twin of polyattn::models::SequenceClassifier in C++: names, shapes and
    meaning of the parameters are the same.

    >>> model = polyattn.models.SequenceClassifier(64, 2, 2, classes=10, mlp=128)
    >>> tokens = torch.randint(1, 257, (2, 30))
    >>> model(tokens, lengths=torch.tensor([30, 12])).shape
    torch.Size([2, 10])

    Args:
        dim, depth, heads: width of the rows, blocks, heads of each.
        vocabulary: how many tokens there are; 257 for bytes, each moved up by
            one, and 0 for padding.
        context: the longest sequence, if positions are learned; rotary ones
            have no limit.
        classes: how many.
        positions: "learned" or "rotary".
        pooling: what the head reads: "mean", of the rows without padding, "class",
            the row of a class token before them, or "padded", the sum of the rows
            without padding divided by `context`.
        mask_zeros: token 0 is padding wherever it stands.
        towers: sequences of an example: 1, or 2, rows 2 i and 2 i + 1 of the
            tokens, of which the head reads [a, b, a * b, a - b].
        head: "linear", or "mlp", which has a hidden layer as wide as `mlp` and relu.
        dropout: of the embedded tokens, after attention and in the mlp.
        drop_path: of the last block; it grows linearly from 0 at the first.
        block: as polyattn.models.Gpt takes; and nystrom, a mapping of what
            polyattn.nn.NystromAttention takes: attention by way of landmarks,
            for which sequences are padded to the context, so that a batch does
            not decide what a landmark is the mean of.
    """

    def __init__(
        self,
        dim: int,
        depth: int,
        heads: int,
        *,
        vocabulary: int = 257,
        context: int = 1024,
        classes: int = 2,
        positions: str = "learned",
        pooling: str = "mean",
        mask_zeros: bool = False,
        towers: int = 1,
        head: str = "linear",
        dropout: float = 0.0,
        drop_path: float = 0.0,
        **block: Any,
    ) -> None:
        super().__init__()
        rotary = rotary_of(_OP, positions, block)
        _check_choice("pooling", pooling, ("mean", "class", "padded"))
        _check_choice("head", head, ("linear", "mlp"))
        _check_choice("towers", towers, (1, 2))
        if context < 1:
            raise ValueError(f"[{_OP}] context {context} < 1")
        if pooling == "padded" and rotary:
            raise ValueError(
                f"[{_OP}] pooling 'padded' needs positions 'learned', which say how "
                "long a padded sequence is"
            )
        self.context, self.dropout = context, dropout
        nystrom = block.get("nystrom")
        self.padded = nystrom is not None
        if nystrom is not None and nystrom.get("landmarks", 64) > context:
            raise ValueError(
                f"[{_OP}] landmarks {nystrom.get('landmarks', 64)} are more than the "
                f"context {context} has tokens"
            )
        self.pooling, self.mask_zeros, self.towers = pooling, mask_zeros, towers
        by_class = pooling == "class"
        self.tokens = TokenEmbedding(vocabulary, dim)
        self.class_token = ClassToken(dim) if by_class else None
        self.positions = None if rotary else PositionEmbedding(context + by_class, dim)
        options = {"norm_eps": 1e-5, "dropout": dropout, **block}
        options.update(causal=False, rotary=rotary)
        self.blocks = make_blocks(dim, depth, heads, drop_path, **options)
        self.norm = make_norm(options.get("norm", "layer"), dim, options["norm_eps"])
        read = 4 * dim if towers == 2 else dim
        hidden = self.blocks[0].mlp.fc1.out_features
        two = head == "mlp"
        self.head_hidden = torch.nn.Linear(read, hidden) if two else None
        self.head = torch.nn.Linear(hidden if two else read, classes)
        initialise_vit(self)

    def forward(self, tokens: Tensor, lengths: Optional[Tensor] = None) -> Tensor:
        """Sequences are padded at their ends; without lengths they are not."""
        rows = self.features(tokens, lengths)
        if self.towers == 2:
            if len(rows) % 2 != 0:
                raise ValueError(f"[{_OP}] {len(rows)} sequences are no pairs")
            a, b = rows[0::2], rows[1::2]
            rows = torch.cat([a, b, a * b, a - b], dim=1)
        if self.head_hidden is not None:
            rows = F.relu(self.head_hidden(rows))
        return self.head(rows)

    def features(self, tokens: Tensor, lengths: Optional[Tensor] = None) -> Tensor:
        """The rows of the sequences: [B, dim]."""
        if tokens.dim() != 2 or tokens.shape[1] == 0:
            raise ValueError(
                f"[{_OP}] tokens have shape {tuple(tokens.shape)}, expected [B, N] "
                "with N > 0"
            )
        seen = None if lengths is None else _seen(lengths, tokens)
        if self.mask_zeros:
            seen = _without_zeros(seen, tokens)
        more = self.context - tokens.shape[1] if self.padded else 0
        if more > 0:
            if seen is None:
                seen = torch.ones_like(tokens, dtype=torch.bool)
            seen = F.pad(seen, (0, more), value=False)
            tokens = F.pad(tokens, (0, more))
        x = self.tokens(tokens)
        if self.class_token is not None:
            x = self.class_token(x)
            seen = None if seen is None else F.pad(seen, (1, 0), value=True)
        if self.positions is not None:
            check_context(_OP, tokens.shape[1], self.context)
            x = self.positions(x)
        x = F.dropout(x, self.dropout, self.training)
        for block in self.blocks:
            x = block(x, None if seen is None else seen[:, None, None])
        x = self.norm(x)
        if self.class_token is not None:
            return x[:, 0]
        if self.pooling == "mean":
            return _mean(x, seen)
        return _sum(x, seen) / self.context


def _seen(lengths: Tensor, tokens: Tensor) -> Tensor:
    """True for tokens, False for padding: [B, N]."""
    batch, longest = tokens.shape
    if lengths.shape != (batch,) or lengths.is_floating_point():
        raise ValueError(
            f"[{_OP}] lengths are {lengths.dtype} of shape {tuple(lengths.shape)}, "
            f"expected integers [{batch}]"
        )
    if batch > 0 and not 1 <= int(lengths.min()) <= int(lengths.max()) <= longest:
        raise ValueError(
            f"[{_OP}] lengths are from {int(lengths.min())} to {int(lengths.max())}, "
            f"expected from 1 to {longest}"
        )
    places = torch.arange(longest, device=tokens.device)
    return places < lengths.to(tokens.device).unsqueeze(1)


def _without_zeros(seen: Optional[Tensor], tokens: Tensor) -> Tensor:
    some = tokens != 0
    if seen is not None:
        some = some & seen
    empty = ~some.any(dim=1)
    if bool(empty.any()):
        raise ValueError(
            f"[{_OP}] sequence {int(empty.nonzero()[0])} holds nothing but zeros, "
            "which are masked"
        )
    return some


def _sum(x: Tensor, seen: Optional[Tensor]) -> Tensor:
    """Padding is filled, not multiplied by 0: it may hold infinities."""
    if seen is not None:
        x = x.masked_fill(~seen.unsqueeze(2), 0.0)
    return x.sum(dim=1)


def _check_choice(name: str, value: Any, choices: tuple) -> None:
    if value not in choices:
        raise ValueError(
            f"[{_OP}] {name} is {value!r}, expected one of "
            + ", ".join(repr(choice) for choice in choices)
        )


def _mean(x: Tensor, seen: Optional[Tensor]) -> Tensor:
    if seen is None:
        return x.mean(dim=1)
    return _sum(x, seen) / seen.sum(dim=1, keepdim=True)
