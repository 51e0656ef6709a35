"""Another activation for every call of scaled_dot_product_attention in a block."""

from __future__ import annotations

import threading
import types
import warnings
from typing import Any, List, Optional, Tuple

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.overrides import TorchFunctionMode

from . import functional
from .nn import MultiheadAttention

_OP = "swap_sdpa"

_NOTHING_CALLED = (
    f"[{_OP}] scaled_dot_product_attention was not called in this block, so that "
    "nothing was swapped. A model that computes its softmax itself is out of reach: "
    'try polyattn.replace_softmax(model, ...); attn_implementation="sdpa", or a name '
    "from polyattn.hf.register, for a model of transformers; polyattn.timm for one of "
    "timm. Scripted models (torch.jit.script) and other threads are not reached"
)


# torch 2.0 has neither of the two.
_is_compiling = getattr(
    getattr(torch, "compiler", None), "is_compiling", lambda: False
)
_mha = getattr(torch.backends, "mha", None)


class Counted:
    """Counts the calls of what it is mixed into."""

    count: int = 0
    """How many calls there were, without those of compiled code."""
    compiled: bool = False
    """Whether compiled code made any."""

    def _note_call(self) -> None:
        # torch.compile compiles again when a number that it has read changes.
        if _is_compiling():
            self.compiled = True
        else:
            self.count += 1


class swap_sdpa(Counted, TorchFunctionMode):
    """Gives torch's scaled_dot_product_attention another activation in a block.

    Inside of the block every call of
    `torch.nn.functional.scaled_dot_product_attention` is one of
    `polyattn.attention` with this activation, all arguments included, and so is
    what `torch.nn.MultiheadAttention` computes, the weights that it returns
    included. `swap_sdpa("softmax")` keeps what a model computes and changes the
    kernel alone. What polyattn's own modules compute stays.

    >>> attention = torch.nn.functional.scaled_dot_product_attention
    >>> q = k = v = torch.ones(1, 2, 16, 4)
    >>> with polyattn.swap_sdpa("x^3/sqrt(N)") as swap:
    ...     attention(q, k, v, scale=0.5)[0, 0, 0, 0]
    tensor(32.)
    >>> swap.count
    1

    A row that sees no key gives zeros; torch before 2.5 has NaN there. The
    backward pass may come after the block, but with activation checkpointing,
    which runs the forward pass again, it must be in the block too. Of nested
    blocks the innermost counts. A block is that of its thread: other threads
    are not reached. Compiled code that is called in a block is compiled again,
    once for each activation. Leaving a block in which nothing was swapped gives
    a warning.

    Args:
        activation: a formula, as polyattn.attention takes. A bad one is a
            ValueError with a caret under the fault.
    """

    def __init__(self, activation: str) -> None:
        if not hasattr(F, "scaled_dot_product_attention"):
            raise RuntimeError(
                f"[{_OP}] torch {torch.__version__} has no scaled_dot_product_attention"
                ", which came with torch 2.0: use polyattn.replace_softmax or "
                "polyattn.attention"
            )
        super().__init__()
        self.activation = functional.activation(activation).formula
        self._before: List[int] = []

    def __enter__(self) -> swap_sdpa:
        _FAST_PATH.close()
        self._before.append(self.count)
        super().__enter__()
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        try:
            super().__exit__(kind, error, trace)
        finally:
            _FAST_PATH.reopen()
        nothing = self.count == self._before.pop() and not self.compiled
        if nothing and kind is None:
            warnings.warn(_NOTHING_CALLED, stacklevel=2)

    def __torch_function__(
        self, func: Any, kinds: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        if func is F.scaled_dot_product_attention:
            self._note_call()
            return _attention(self.activation, *args, **kwargs)
        # While this function runs the mode is off, and what they call is not seen.
        if func is F.multi_head_attention_forward:
            self._note_call()
            return _multi_head_attention(self.activation, *args, **kwargs)
        if func in _BACKWARD and not _is_compiling():
            return self._backward(func, args, kwargs)
        return func(*args, **kwargs)

    def _backward(self, func: Any, args: Any, kwargs: Any) -> Any:
        """With the mode on: checkpointing runs the forward pass again."""
        super().__enter__()
        try:
            return _undispatched(func)(*args, **kwargs)
        finally:
            super().__exit__(None, None, None)


_BACKWARD = (Tensor.backward, torch.autograd.backward, torch.autograd.grad)


def _undispatched(func: Any) -> Any:
    """The same function, which does not ask the modes first."""
    asks = [name for name in func.__globals__ if name.startswith("has_torch_function")]
    names = {**func.__globals__, **{name: lambda *_: False for name in asks}}
    copy = types.FunctionType(
        func.__code__, names, func.__name__, func.__defaults__, func.__closure__
    )
    copy.__kwdefaults__ = func.__kwdefaults__
    return copy


class _FastPath:
    """torch's encoder layers compute softmax by a path of their own, which one
    flag of the process closes: for as long as any block of any thread is open."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.blocks = 0
        self.was_open = True

    def close(self) -> None:
        with self.lock:
            if self.blocks == 0 and _mha is not None:
                self.was_open = _mha.get_fastpath_enabled()
                _mha.set_fastpath_enabled(False)
            self.blocks += 1

    def reopen(self) -> None:
        with self.lock:
            self.blocks -= 1
            if self.blocks == 0 and _mha is not None:
                _mha.set_fastpath_enabled(self.was_open)


_FAST_PATH = _FastPath()


def _attention(
    activation: str,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Optional[Tensor] = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    **options: Any,
) -> Tensor:
    variant = getattr(attn_mask, "variant", None)
    if variant is not None:  # of torch.nn.attention.bias.CausalBias
        attn_mask, is_causal = None, True
        options["causal_alignment"] = variant.name.lower()
    return functional.attention(
        query,
        key,
        value,
        attn_mask,
        dropout_p,
        is_causal,
        activation=activation,
        **options,
    )


class _Call:
    """A call of F.multi_head_attention_forward as a module of ours sees it."""

    batch_first = False
    bias_k = bias_v = _before_weights = None
    forward = MultiheadAttention.forward
    _project = MultiheadAttention._project
    _heads = MultiheadAttention._heads
    _merge = MultiheadAttention._merge
    _append_keys = MultiheadAttention._append_keys
    _attend = MultiheadAttention._attend

    def out_proj(self, x: Tensor) -> Tensor:
        return F.linear(x, self.out_proj_weight, self.out_proj_bias)


def _multi_head_attention(
    activation: str,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Optional[Tensor],
    in_proj_bias: Optional[Tensor],
    bias_k: Optional[Tensor],
    bias_v: Optional[Tensor],
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: Tensor,
    out_proj_bias: Optional[Tensor],
    training: bool = True,
    key_padding_mask: Optional[Tensor] = None,
    need_weights: bool = True,
    attn_mask: Optional[Tensor] = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Optional[Tensor] = None,
    k_proj_weight: Optional[Tensor] = None,
    v_proj_weight: Optional[Tensor] = None,
    static_k: Optional[Tensor] = None,
    static_v: Optional[Tensor] = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> Tuple[Tensor, Optional[Tensor]]:
    """The parameters are torch's."""
    if static_k is not None or static_v is not None:
        raise NotImplementedError(
            f"[{_OP}] static_k and static_v of multi_head_attention_forward are not "
            "supported"
        )
    call = _Call()
    call.activation = activation
    call.embed_dim = call.kdim = call.vdim = embed_dim_to_check
    call.num_heads, call.head_dim = num_heads, embed_dim_to_check // num_heads
    call.in_proj_weight, call.in_proj_bias = in_proj_weight, in_proj_bias
    call.out_proj_weight, call.out_proj_bias = out_proj_weight, out_proj_bias
    call.bias_k, call.bias_v, call.add_zero_attn = bias_k, bias_v, add_zero_attn
    call.dropout, call.training = dropout_p, training
    if use_separate_proj_weight:
        call.in_proj_weight, call.q_proj_weight = None, q_proj_weight
        call.k_proj_weight, call.v_proj_weight = k_proj_weight, v_proj_weight
        call.kdim, call.vdim = k_proj_weight.shape[1], v_proj_weight.shape[1]
    return call.forward(
        query,
        key,
        value,
        key_padding_mask=key_padding_mask,
        need_weights=need_weights,
        attn_mask=attn_mask,
        average_attn_weights=average_attn_weights,
        is_causal=is_causal,
    )
