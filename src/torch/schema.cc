// The signatures of the ops. Their implementations: attention.cc (the public
// ones), varlen.cc, opaque.cc, matched.cc, cpu.cc, meta.cc, autograd.cc, jvp.cc
// and autocast.cc. decode_class.cc has a class beside them.
#include <torch/library.h>

// The arguments and their order are those of scaled_dot_product_attention;
// what it does not have comes last. causal_alignment: "upper_left", or
// "lower_right" (the last query is aligned with the last key). path: "auto",
// "dense" or "linear", as Path of polyattn/attention.h. window_size: how many
// keys a row sees before its own position and behind it, -1 for all. log_decay:
// of all key heads and keys, or broadcast to them.
#define POLYATTN_ATTENTION_ARGUMENTS                                  \
  "(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, " \
  "float dropout_p=0.0, bool is_causal=False, *, float? scale=None, " \
  "bool enable_gqa=False, str activation=\"softmax\", "               \
  "Tensor? coefficients=None, str causal_alignment=\"upper_left\", "  \
  "str path=\"auto\", Tensor? bias=None, "                            \
  "int[] window_size=[-1, -1], Tensor? log_decay=None)"

TORCH_LIBRARY(polyattn, m) {
  m.def("attention" POLYATTN_ATTENTION_ARGUMENTS " -> Tensor");
  m.def("attention_with_norms" POLYATTN_ATTENTION_ARGUMENTS
        " -> (Tensor output, Tensor weight_norm, Tensor jacobian_norm, "
        "Tensor max_abs_score, Tensor non_finite)");

  m.def(
      "attention_varlen(Tensor query, Tensor key, Tensor value, "
      "Tensor cu_seqlens_q, Tensor cu_seqlens_k, bool is_causal=False, *, "
      "float? scale=None, str activation=\"softmax\", "
      "Tensor? coefficients=None, str causal_alignment=\"upper_left\", "
      "str path=\"auto\", int[] window_size=[-1, -1]) -> Tensor");

  // The output, and what it changes by if query, key, value and bias change by
  // their tangents: zero where there are none. It has no path to choose.
  m.def(
      "attention_jvp(Tensor query, Tensor key, Tensor value, "
      "Tensor? query_tangent=None, Tensor? key_tangent=None, "
      "Tensor? value_tangent=None, Tensor? bias_tangent=None, "
      "Tensor? attn_mask=None, bool is_causal=False, *, float? scale=None, "
      "bool enable_gqa=False, str activation=\"softmax\", "
      "Tensor? coefficients=None, str causal_alignment=\"upper_left\", "
      "Tensor? bias=None, int[] window_size=[-1, -1]) "
      "-> (Tensor output, Tensor tangent)");

  // The definition in torch ops, which torch's transforms can look into.
  m.def("_composed_attention" POLYATTN_ATTENTION_ARGUMENTS " -> Tensor");

  // What a compiler sees of both: a box with its inputs as they came
  // (opaque.cc).
  m.def(
      "_opaque_forward(Tensor query, Tensor key, Tensor value, "
      "Tensor? attn_mask, Tensor? bias, Tensor? coefficients, "
      "Tensor? cu_seqlens_q, Tensor? cu_seqlens_k, bool is_causal, "
      "float? scale, bool enable_gqa, str activation, str causal_alignment, "
      "str path, int[] window_size, bool norms) "
      "-> (Tensor output, Tensor rows, Tensor norms)");
  m.def(
      "_opaque_backward(Tensor d_output, Tensor query, Tensor key, "
      "Tensor value, Tensor? attn_mask, Tensor? bias, Tensor? coefficients, "
      "Tensor? cu_seqlens_q, Tensor? cu_seqlens_k, Tensor output, "
      "Tensor rows, bool is_causal, float? scale, bool enable_gqa, "
      "str activation, str causal_alignment, str path, int[] window_size, "
      "bool[4] wanted) "
      "-> (Tensor dq, Tensor dk, Tensor dv, Tensor d_coefficients)");

  m.def(
      "_fused_forward(Tensor q, Tensor k, Tensor v, Tensor? mask, "
      "Tensor? bias, Tensor? coefficients, Tensor? log_decay, "
      "str activation, float scale, int causal, int path, float dropout_p, "
      "int seed, int[] window_size, bool norms) "
      "-> (Tensor o, Tensor rows, Tensor norms)");
  m.def(
      "_fused_backward(Tensor d_o, Tensor q, Tensor k, Tensor v, "
      "Tensor? mask, Tensor? bias, Tensor? coefficients, "
      "Tensor? log_decay, Tensor o, Tensor rows, str activation, "
      "float scale, int causal, int path, float dropout_p, int seed, "
      "int[] window_size, bool[6] wanted) "
      "-> (Tensor dq, Tensor dk, Tensor dv, Tensor d_coefficients, "
      "Tensor d_bias, Tensor d_log_decay)");

  // For Python, which has no parser of its own.
  m.def("canonical_formula(str formula) -> str");
  m.def("polynomial_coefficients(str formula) -> float[]");
  m.def("active_target() -> str");
  m.def(
      "matched_gain(str activation, int tokens, bool causal, float score_std, "
      "float factor) -> (float gain, float scale, float? norm, "
      "float softmax_norm, str? reason)");
}
