"""Activations by name for the models of transformers.

    import polyattn.hf

    polyattn.hf.register("poly3", "x^3/sqrt(N)")
    model = AutoModelForCausalLM.from_pretrained(..., attn_implementation="poly3")
"""

from __future__ import annotations

import re
from typing import Any, Dict, Optional, Tuple

import torch
from torch import Tensor

from . import functional
from ._errors import check_type
from .swap import Counted

try:
    from transformers import AttentionInterface, AttentionMaskInterface
    from transformers.masking_utils import sdpa_mask
except ImportError as error:
    raise ImportError(
        "[polyattn.hf] needs a transformers that has AttentionInterface and "
        f"AttentionMaskInterface: {error}"
    ) from error

from .hf_cache import StateCache, layer_of  # noqa: E402 (it needs transformers)

__all__ = ["Registered", "StateCache", "register"]

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]*")
# Parts of a name that transformers takes for one of its own implementations.
_TAKEN = ("eager", "flash", "flex_attention", "paged", "sdpa")
# What changes scores or weights, and cannot be told to polyattn.attention.
_REFUSED = {
    "softcap": "a cap of the scores",
    "s_aux": "attention sinks",
    "sinks": "attention sinks",
    "position_bias": "a bias of the scores beside the mask",
    "head_mask": "a mask of the heads",
    "indices": "the keys that a row may see, beside the mask",
    "block_indices": "the keys that a row may see, beside the mask",
}


def register(name: str, activation: str) -> Registered:
    """Makes `attn_implementation=name` mean attention with this activation.

    Both the attention function and the masks that go with it are registered,
    for all models of this process that use transformers' AttentionInterface. To
    register a name again with the same formula changes nothing.

    >>> cubic = polyattn.hf.register("cubic", "x^3/sqrt(N)")
    >>> config = transformers.GPT2Config(n_embd=8, n_head=2, n_layer=3)
    >>> model = transformers.AutoModelForCausalLM.from_config(
    ...     config, attn_implementation="cubic"
    ... )
    >>> y = model(torch.tensor([[1, 2, 3]]))
    >>> cubic.count
    3

    A model that does not use the interface, as T5, takes any name, says nothing
    and computes softmax: `count` stays 0 then.

    Args:
        name: letters, digits and `_.-`. Names that mean something to
            transformers are refused.
        activation: a formula, as polyattn.attention takes.
    """
    check_type("hf.register", "name", name, str)
    formula = functional.activation(activation).formula
    _check_name(name)
    known = AttentionInterface().get(name)
    if known is None:
        known = Registered(name, formula)
        AttentionInterface.register(name, known)
        AttentionMaskInterface.register(name, sdpa_mask)
    elif not isinstance(known, Registered):
        raise ValueError(f"[hf.register] the name '{name}' is taken in transformers")
    elif known.activation != formula:
        raise ValueError(
            f"[hf.register] '{name}' is {known.activation} already, not {formula}"
        )
    return known


def _check_name(name: str) -> None:
    if not _NAME.fullmatch(name):
        raise ValueError(
            f"[hf.register] name is '{name}', expected letters, digits and '_.-': "
            "others mean a kernel of a hub to transformers"
        )
    for part in _TAKEN:
        if part in name:
            raise ValueError(
                f"[hf.register] name '{name}' contains '{part}', which transformers "
                "takes for an implementation of its own"
            )


class Registered(Counted):
    """An attention function of transformers; register makes it.

    >>> polyattn.hf.register("quartic", "x^4/sum")
    Registered('quartic', 'x^4/sum', count=0)

    `count` says how many calls there were, without those of compiled code, and
    `compiled` whether compiled code made any.
    """

    def __init__(self, name: str, activation: str) -> None:
        self.name, self.activation = name, activation

    def __repr__(self) -> str:
        return f"Registered({self.name!r}, {self.activation!r}, count={self.count})"

    def __call__(
        self,
        module: torch.nn.Module,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attention_mask: Optional[Tensor],
        dropout: float = 0.0,
        scaling: Optional[float] = None,
        is_causal: Optional[bool] = None,
        output_attentions: Optional[bool] = False,
        **others: Any,
    ) -> Tuple[Tensor, Optional[Tensor]]:
        """q [B, H, N, D], k [B, G, M, D], v [B, G, M, E] to [B, N, H, E], and
        the weights [B, H, N, M] if they were asked for.

        Without a mask, transformers means all keys for a single row, as when a
        token is generated with a cache, and otherwise what `is_causal` says,
        or the module; of these a `sliding_window` shows the last ones, as many
        as it says, and on both sides where nothing is causal. A mask that
        transformers made for such a layer holds its window.
        """
        self._note_call()
        kind = type(module).__name__
        _check_others(kind, others)
        keys = _window(kind, others)
        layer = layer_of(key)
        if layer is not None:
            tokens = layer.get_seq_length()
            if attention_mask is None and keys is not None and tokens > keys:
                raise ValueError(
                    f"[StateCache] {kind} passes sliding_window {keys} at {tokens} "
                    "tokens: a state of constant size cannot leave out single keys"
                )
            if output_attentions or dropout > 0:
                raise ValueError(
                    f"[StateCache] {kind} asks for dropout or for attention weights, "
                    "which a state does not have: use model.eval() and no "
                    "output_attentions"
                )
            output = layer.attend(
                query,
                key,
                value,
                attention_mask,
                activation=self.activation,
                scale=scaling,
            )
            return output.transpose(1, 2).contiguous(), None
        if attention_mask is None:
            _check_no_mask_needed(kind, others)
        else:
            attention_mask = _check_mask(kind, attention_mask, key)
        if is_causal is None:
            is_causal = getattr(module, "is_causal", True)
        options = dict(
            attn_mask=attention_mask,
            dropout_p=dropout,
            is_causal=query.shape[2] > 1 and attention_mask is None and is_causal,
            scale=scaling,
            enable_gqa=hasattr(module, "num_key_value_groups"),
        )
        if attention_mask is None and keys is not None and key.shape[2] > keys:
            options.update(_windowed(kind, query, key, keys, is_causal))
        attend = self._attend_with_weights if output_attentions else self._attend
        output, weights = attend(query, key, value, **options)
        return output.transpose(1, 2).contiguous(), weights

    def _attend(
        self, query: Tensor, key: Tensor, value: Tensor, **options: Any
    ) -> Tuple[Tensor, Optional[Tensor]]:
        output = functional.attention(
            query, key, value, activation=self.activation, **options
        )
        return output, None

    def _attend_with_weights(
        self, query: Tensor, key: Tensor, value: Tensor, **options: Any
    ) -> Tuple[Tensor, Optional[Tensor]]:
        """The weights are the output for values that are the unit vectors."""
        keys = key.shape[2]
        unit = torch.eye(keys, dtype=value.dtype, device=value.device)
        unit = unit.expand(*value.shape[:2], keys, keys)
        weights, _ = self._attend(query, key, unit, **options)
        groups = query.shape[1] // value.shape[1]
        return weights @ value.repeat_interleave(groups, dim=1), weights


def _check_others(kind: str, others: Any) -> None:
    for name, meaning in _REFUSED.items():
        if others.get(name) is not None:
            raise ValueError(
                f"[polyattn.hf] {kind} passes `{name}`, {meaning}, which "
                "polyattn.attention does not have"
            )


def _check_mask(kind: str, mask: Tensor, key: Tensor) -> Tensor:
    check_type("polyattn.hf", f"the attention_mask of {kind}", mask, Tensor)
    if mask.dim() != 4:
        raise ValueError(
            f"[polyattn.hf] the attention_mask of {kind} has shape "
            f"{tuple(mask.shape)}, expected [B, 1 or H, N, M]"
        )
    return mask[..., : key.shape[2]]


def _window(kind: str, others: Any) -> Optional[int]:
    """How many keys a token may see, its own included; None: all."""
    keys = others.get("sliding_window")
    if keys is not None and (not isinstance(keys, int) or keys < 1):
        raise ValueError(
            f"[polyattn.hf] {kind} passes sliding_window {keys!r}, expected a number "
            "of keys, 1 or more"
        )
    return keys


def _windowed(
    kind: str, query: Tensor, key: Tensor, keys: int, is_causal: bool
) -> Dict[str, Any]:
    """Of polyattn.attention, where there is no mask and more keys than these."""
    rows = query.shape[2]
    if rows not in (1, key.shape[2]):
        raise ValueError(
            f"[polyattn.hf] {kind} passes sliding_window {keys} with {rows} rows and "
            f"{key.shape[2]} keys, but no mask that says where the rows are"
        )
    # A single row is the last one of its text.
    return dict(
        is_causal=is_causal or rows == 1,
        causal_alignment="lower_right",
        window_size=(keys - 1, keys - 1),
    )


def _check_no_mask_needed(kind: str, others: Any) -> None:
    """transformers leaves a mask out only where there is nothing to hide but
    what is_causal says."""
    lengths = others.get("cu_seq_lens_q")
    if lengths is not None and len(lengths) > 2:
        raise ValueError(
            f"[polyattn.hf] {kind} passes {len(lengths) - 1} packed sequences "
            "(cu_seq_lens_q), but no mask that keeps them apart"
        )
