"""Language model: tokens, positions, causal blocks, norm, logits."""

from __future__ import annotations

from typing import Any, Dict, Union

import torch
import torch.nn.functional as F
from torch import Tensor

from .block import make_blocks, make_norm
from .embedding import PositionEmbedding, TokenEmbedding, initialise_gpt2

_OP = "Gpt"


class Gpt(torch.nn.Module):
    """Tokens [B, N] -> logits [B, N, vocabulary] of the tokens that follow.

    The twin of polyattn::models::Gpt in C++: names, shapes and meaning of the
    parameters are the same. gelu is the approximation with tanh, as in GPT-2.

    >>> model = polyattn.models.Gpt(64, 2, 4, activation="x^3/sqrt(N)")
    >>> model(b"My fellow Americans,").shape
    torch.Size([1, 20, 256])

    Args:
        dim, depth, heads: width of the rows, blocks, heads of each.
        vocabulary: how many tokens there are; 256 for bytes.
        context: the longest sequence, if positions are learned; rotary ones
            have no limit.
        positions: "learned" or "rotary".
        tied: the table of the tokens is the output layer too.
        dropout: of the embedded tokens, after attention and in the mlp.
        drop_path: of the last block; it grows linearly from 0 at the first.
        block: mlp, norm, layer_scale, attention_dropout, and what
            polyattn.nn.Attention takes: activation, kv_heads, qk_norm,
            learned_scale, learned_coefficients, rotary, output_norm,
            output_gate, center_values, short_conv, window, decay.
    """

    def __init__(
        self,
        dim: int,
        depth: int,
        heads: int,
        *,
        vocabulary: int = 256,
        context: int = 256,
        positions: str = "learned",
        tied: bool = True,
        dropout: float = 0.0,
        drop_path: float = 0.0,
        **block: Any,
    ) -> None:
        super().__init__()
        rotary = rotary_of(_OP, positions, block)
        if context < 1:
            raise ValueError(f"[{_OP}] context {context} < 1")
        self.context, self.dropout = context, dropout
        self.tokens = TokenEmbedding(vocabulary, dim)
        self.positions = None if rotary else PositionEmbedding(context, dim)
        options = {"norm_eps": 1e-5, "gelu": "tanh", "dropout": dropout, **block}
        options.update(causal=True, rotary=rotary)
        self.blocks = make_blocks(dim, depth, heads, drop_path, **options)
        self.norm = make_norm(options.get("norm", "layer"), dim, options["norm_eps"])
        self.head = None if tied else torch.nn.Linear(dim, vocabulary, bias=False)
        initialise_gpt2(self, depth)

    def forward(self, tokens: Union[Tensor, bytes]) -> Tensor:
        """Of integers [B, N], or of the bytes of one text."""
        if isinstance(tokens, (bytes, bytearray)):
            vocabulary = self.tokens.weight.shape[0]
            if vocabulary != 256:
                raise ValueError(
                    f"[{_OP}] a text in bytes, but the model has {vocabulary} tokens: "
                    "hand in their ids [B, N], of a run those of its tokenizer.model"
                )
            tokens = torch.tensor([list(tokens)], device=self.tokens.weight.device)
        if tokens.dim() != 2 or tokens.shape[1] == 0:
            raise ValueError(
                f"[{_OP}] tokens have shape {tuple(tokens.shape)}, expected [B, N] "
                "with N > 0"
            )
        x = self.tokens(tokens)
        if self.positions is not None:
            check_context(_OP, tokens.shape[1], self.context)
            x = self.positions(x)
        x = F.dropout(x, self.dropout, self.training)
        for block in self.blocks:
            x = block(x)
        x = self.norm(x)
        return self.tokens.logits(x) if self.head is None else self.head(x)

    def loss(self, tokens: Tensor, targets: Tensor) -> Tensor:
        """Mean cross-entropy, in nats, of the token that follows each: targets
        is tokens moved by one. Targets of -100 do not count."""
        if targets.shape != tokens.shape:
            raise ValueError(
                f"[{_OP}] targets have shape {tuple(targets.shape)}, expected "
                f"{tuple(tokens.shape)}, that of tokens"
            )
        return F.cross_entropy(self(tokens).flatten(0, 1), targets.flatten().long())


def rotary_of(op: str, positions: str, block: Dict[str, Any]) -> Any:
    """What an attention takes as `rotary`, given the positions."""
    if positions not in ("learned", "rotary"):
        raise ValueError(
            f"[{op}] positions is {positions!r}, expected 'learned' or 'rotary'"
        )
    given = block.get("rotary", False)
    if positions == "learned" and given:
        raise ValueError(f"[{op}] positions are learned, but the attention is rotary")
    return given or positions == "rotary"


def check_context(op: str, length: int, context: int) -> None:
    """ValueError for a sequence that has more rows than positions."""
    if length > context:
        raise ValueError(
            f"[{op}] a sequence of {length} tokens is longer than the context "
            f"{context} for which positions were learned"
        )
