"""A cache of transformers that does not grow: DecodeState for each layer."""

from __future__ import annotations

from typing import List, Optional, Tuple

import torch
from torch import Tensor
from transformers.cache_utils import Cache, CacheLayerMixin

from .decode import DecodeState

# Attention functions of transformers are not given the cache. A layer hands on the
# new keys alone, and this attribute of theirs leads back to it.
_LAYER = "_polyattn_layer"


def layer_of(key: Tensor) -> Optional["StateLayer"]:
    """The layer that handed on these keys, if one did."""
    return getattr(key, _LAYER, None)


class StateLayer(CacheLayerMixin):
    """What one layer has read. StateCache makes them."""

    is_sliding = False

    def __init__(self, mode: str = "auto") -> None:
        super().__init__()
        self.mode = mode
        self.state: Optional[DecodeState] = None
        self._tokens = 0  # those that padding hides too
        self._waiting = False  # keys were handed on and have not come to attend()

    def lazy_initialization(self, key_states: Tensor, value_states: Tensor) -> None:
        self.dtype, self.device = key_states.dtype, key_states.device
        self.is_initialized = True

    def update(
        self, key_states: Tensor, value_states: Tensor, *_: object, **__: object
    ) -> Tuple[Tensor, Tensor]:
        """The new keys and values, marked for attend()."""
        self._check_taken()
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        # A tensor of its own: the mark is for this call alone.
        handed = key_states.view_as(key_states)
        setattr(handed, _LAYER, self)
        self._tokens += key_states.shape[-2]
        self._waiting = True
        return handed, value_states

    def attend(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        mask: Optional[Tensor],
        *,
        activation: str,
        scale: Optional[float],
    ) -> Tensor:
        """Attention of the new tokens to all that were read, and to themselves."""
        self._waiting = False
        tokens = key.shape[2]
        if query.shape[2] != tokens:
            raise ValueError(
                f"[StateCache] {query.shape[2]} queries for {tokens} new keys"
            )
        if self.state is None:
            self.state = DecodeState(
                key.shape[0],
                query.shape[1],
                key.shape[3],
                kv_heads=key.shape[1],
                value_dim=value.shape[3],
                activation=activation,
                scale=scale,
                mode=self.mode,
                dtype=key.dtype,
            )
        elif self.state.activation != activation:
            raise ValueError(
                f"[StateCache] {activation} does not follow on {self.state.activation}"
            )
        if mask is None:
            return self.state.step(query, key, value)
        real = self._real_tokens(mask, tokens)
        if bool(real.all()):
            return self.state.step(query, key, value)
        return self._step_without_padding(query, key, value, real)

    def _real_tokens(self, mask: Tensor, tokens: int) -> Tensor:
        """Which of the new tokens are no padding, [B, tokens]; the mask must be what
        causality and padding make of it, for a state has nothing else."""
        assert self.state is not None
        if mask.dtype != torch.bool:
            mask = mask > torch.finfo(mask.dtype).min / 2
        batch = self.state.batch
        seen = mask[:, 0, -tokens:, :].expand(batch, -1, -1)
        new = seen[:, :, -tokens:]
        real = new[:, -1]
        before = torch.tensor(self.state.lengths)
        causal = torch.ones(tokens, tokens, dtype=torch.bool).tril()
        want = real[:, None, :] & causal
        rows = real[:, :, None]  # rows of padding may see anything
        same = bool(((new == want) | ~rows).all())
        counts = seen[:, :, :-tokens].sum(-1)
        if not same or not bool(((counts == before[:, None]) | ~real).all()):
            raise ValueError(
                "[StateCache] the mask hides more than padding and later tokens (a "
                "window, perhaps): a state of constant size cannot leave out single "
                "keys"
            )
        return real

    def _step_without_padding(
        self, query: Tensor, key: Tensor, value: Tensor, real: Tensor
    ) -> Tensor:
        """Padding goes behind the tokens of each text, is not read, and comes back as
        zeros where it was."""
        assert self.state is not None
        order = torch.argsort((~real).to(torch.int8), dim=1, stable=True)

        def moved(t: Tensor, index: Tensor) -> Tensor:
            return t.gather(2, index[:, None, :, None].expand_as(t))

        counts = real.sum(1).tolist()
        output = self.state.step(
            *(moved(t, order) for t in (query, key, value)), counts=counts
        )
        return moved(output, torch.argsort(order, dim=1))

    def _check_taken(self) -> None:
        if self._waiting:
            raise RuntimeError(
                "[StateCache] the model did not hand the keys of the cache to its "
                "attention function as they were: it needs "
                "attn_implementation=NAME of polyattn.hf.register, and a model that "
                "calls it with what the cache returned"
            )

    def get_mask_sizes(self, query_length: int) -> Tuple[int, int]:
        if not isinstance(query_length, int):  # older: the positions of the queries
            query_length = query_length.shape[0]
        return self._tokens + query_length, 0

    def get_seq_length(self) -> int:
        return self._tokens

    def get_max_cache_shape(self) -> int:
        return -1

    def reset(self) -> None:
        self.state, self._tokens, self._waiting = None, 0, False

    def reorder_cache(self, beam_idx: Tensor) -> None:
        self.batch_select_indices(beam_idx)

    def batch_select_indices(self, indices: Tensor) -> None:
        self._check_taken()
        if self.state is not None:
            self.state.select(indices)

    def batch_repeat_interleave(self, repeats: int) -> None:
        if self.state is not None:
            members = torch.arange(self.state.batch)
            self.batch_select_indices(members.repeat_interleave(repeats))

    def crop(self, max_length: int) -> None:
        if max_length < 0:
            max_length += self._tokens
        if max_length < self._tokens:
            raise NotImplementedError(
                f"[StateCache] {self._tokens} tokens cannot be cut to {max_length}: "
                "sums do not forget (assisted generation needs a DynamicCache)"
            )

    def offload(self) -> None:
        raise NotImplementedError("[StateCache] a state is on the CPU already")

    prefetch = offload


class StateCache(Cache):
    """For `model.generate(..., past_key_values=polyattn.hf.StateCache())`.

    Each layer keeps a polyattn.DecodeState: for a polynomial its size, and the time
    of a token, do not depend on the length of the text. The model must have an
    attention that polyattn.hf.register made. Beams, left padding and prompts in
    pieces work; assisted generation, which takes tokens back, does not.

    >>> poly = polyattn.hf.register("quadratic", "x^2/sqrt(N)")
    >>> config = transformers.GPT2Config(
    ...     vocab_size=100, n_embd=8, n_head=2, n_layer=1, bos_token_id=0, eos_token_id=0
    ... )
    >>> model = transformers.AutoModelForCausalLM.from_config(
    ...     config, attn_implementation="quadratic"
    ... ).eval()
    >>> cache = polyattn.hf.StateCache()
    >>> text = model.generate(
    ...     torch.tensor([[1, 2, 3]]), max_new_tokens=5, min_new_tokens=5,
    ...     past_key_values=cache, pad_token_id=0, do_sample=False
    ... )
    >>> text.shape, cache.get_seq_length()
    (torch.Size([1, 8]), 7)

    Args:
        mode: of DecodeState: "auto", "state" or "cache".
    """

    def __init__(self, mode: str = "auto") -> None:
        super().__init__(layer_class_to_replicate=lambda: StateLayer(mode))

    @property
    def nbytes(self) -> int:
        """What all layers take."""
        states: List[DecodeState] = [
            layer.state for layer in self.layers if layer.state is not None
        ]
        return sum(state.nbytes for state in states)
