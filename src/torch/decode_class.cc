// polyattn::DecodeState as a class of torch's, for Python
// (torch.classes.polyattn.DecodeState; python/polyattn/decode.py).
#include <ATen/ATen.h>
#include <torch/custom_class.h>

#include <cstring>

#include "polyattn/decode.h"
#include "torch/call.h"
#include "torch/core_errors.h"
#include "torch/parallel.h"
#include "torch/parts.h"

namespace polyattn {
namespace {

using OptionalCounts = c10::optional<std::vector<std::int64_t>>;

DecodeMode mode_of(const std::string& name) {
  TORCH_CHECK(name == "auto" || name == "cache" || name == "state",
              "[DecodeState] mode '", name,
              "' is none of 'auto', 'cache' and 'state'");
  if (name == "auto") return DecodeMode::kAuto;
  return name == "cache" ? DecodeMode::kCache : DecodeMode::kSums;
}

class DecodeHolder : public torch::CustomClassHolder {
 public:
  explicit DecodeHolder(DecodeState state) : state_(std::move(state)) {}

  at::Tensor step(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                  const OptionalCounts& counts,
                  const c10::optional<at::Tensor>& log_decay) {
    check("query", q, state_.shape().heads, state_.shape().d);
    check("key", k, state_.shape().kv_heads, state_.shape().d);
    check("value", v, state_.shape().kv_heads, state_.shape().e);
    // [B, N, H, E] in memory, so that heads lie side by side for what follows;
    // zeros behind the tokens of a member.
    const at::Tensor o =
        at::zeros({q.size(0), q.size(2), q.size(1), v.size(3)}, q.options())
            .transpose(1, 2);
    const at::Tensor rows_q = with_dense_rows(q), rows_k = with_dense_rows(k),
                     rows_v = with_dense_rows(v);
    with_torch_errors([&] {
      TorchParallel parallel;
      state_.step({view_of(rows_q), view_of(rows_k), view_of(rows_v),
                   span_of(counts), decay_of(log_decay)},
                  view_of(o), parallel);
    });
    return o;
  }

  void append(const at::Tensor& k, const at::Tensor& v,
              const OptionalCounts& counts,
              const c10::optional<at::Tensor>& log_decay) {
    check("key", k, state_.shape().kv_heads, state_.shape().d);
    check("value", v, state_.shape().kv_heads, state_.shape().e);
    const at::Tensor rows_k = with_dense_rows(k), rows_v = with_dense_rows(v);
    with_torch_errors([&] {
      TorchParallel parallel;
      state_.append(view_of(rows_k), view_of(rows_v), span_of(counts), parallel,
                    decay_of(log_decay));
    });
  }

  std::vector<std::int64_t> lengths() const {
    return by_member([&](std::int64_t b) { return state_.length(b); });
  }
  std::vector<std::int64_t> folded() const {
    return by_member([&](std::int64_t b) { return state_.folded(b); });
  }
  std::int64_t nbytes() const {
    return static_cast<std::int64_t>(state_.bytes());
  }

  c10::intrusive_ptr<DecodeHolder> fork() const {
    return c10::make_intrusive<DecodeHolder>(state_);
  }

  void select(const std::vector<std::int64_t>& index) {
    with_torch_errors([&] { state_.select(index); });
  }

  at::Tensor save() const {
    const std::vector<std::byte> bytes = state_.save();
    const at::Tensor saved =
        at::empty({static_cast<std::int64_t>(bytes.size())}, at::kByte);
    std::memcpy(saved.data_ptr(), bytes.data(), bytes.size());
    return saved;
  }

  // [batch, heads, kv_heads, width of q and k, width of v]
  std::vector<std::int64_t> shape() const {
    const DecodeShape& s = state_.shape();
    return {s.batch, s.heads, s.kv_heads, s.d, s.e};
  }
  std::string activation() const {
    return state_.options().activation.to_string();
  }

 private:
  static std::span<const std::int64_t> span_of(const OptionalCounts& counts) {
    if (!counts) return {};
    return {counts->data(), counts->size()};
  }

  // [B, G, T] as the core has it; sizes of 1 are repeated, and missing ones.
  static std::optional<ConstTensor> decay_of(
      const c10::optional<at::Tensor>& log_decay) {
    if (!log_decay || !log_decay->defined()) return {};
    at::Tensor t = *log_decay;
    TORCH_CHECK(at::isFloatingType(t.scalar_type()) && t.dim() <= 3,
                "[DecodeState] log_decay of type ", t.scalar_type(),
                " and size ", t.sizes(), " is not floating point [batch, ",
                "key heads, tokens]");
    while (t.dim() < 3) t = t.unsqueeze(0);
    return view_of(t.unsqueeze(3));
  }

  template <typename F>
  std::vector<std::int64_t> by_member(F&& f) const {
    std::vector<std::int64_t> values;
    for (std::int64_t b = 0; b < state_.shape().batch; ++b)
      values.push_back(f(b));
    return values;
  }

  void check(const char* name, const at::Tensor& t, std::int64_t heads,
             std::int64_t width) const {
    const std::int64_t batch = state_.shape().batch;
    TORCH_CHECK(t.dim() == 4 && t.size(0) == batch && t.size(1) == heads &&
                    t.size(3) == width,
                "[DecodeState] ", name, " of size ", t.sizes(), " is not [",
                batch, ", ", heads, ", tokens, ", width, "]");
    TORCH_CHECK(t.is_cpu(), "[DecodeState] ", name, " is on ", t.device(),
                "; decoding is for the CPU");
    TORCH_CHECK(!(at::GradMode::is_enabled() && t.requires_grad()),
                "[DecodeState] ", name,
                " wants a gradient, which a state does not pass on: decode "
                "under torch.no_grad()");
  }

  DecodeState state_;
};

using HolderPtr = c10::intrusive_ptr<DecodeHolder>;

// shape: [batch, heads, kv_heads, width of q and k, width of v]. like: a tensor
// of the type in which keys and values come and are kept. window: tokens that
// one sees; 0: all.
HolderPtr make_holder(const std::vector<std::int64_t>& shape,
                      const std::string& activation,
                      c10::optional<double> scale, const std::string& mode,
                      const at::Tensor& like, std::int64_t window) {
  TORCH_CHECK(shape.size() == 5, "[DecodeState] ", shape.size(),
              " sizes, not 5");
  DecodeOptions options{
      .activation = parse_activation(activation),
      .mode = mode_of(mode),
      .compute = compute_type(like),
      .storage = view_of(at::empty({0, 0, 0, 0}, like.options())).dtype,
      .window = window};
  if (scale) options.scale = *scale;
  HolderPtr holder;
  with_torch_errors([&] {
    holder =
        c10::make_intrusive<DecodeHolder>(DecodeState({.batch = shape[0],
                                                       .heads = shape[1],
                                                       .kv_heads = shape[2],
                                                       .d = shape[3],
                                                       .e = shape[4]},
                                                      options));
  });
  return holder;
}

HolderPtr load_holder(const at::Tensor& saved) {
  TORCH_CHECK(saved.dim() == 1 && saved.scalar_type() == at::kByte,
              "[DecodeState] saved state of size ", saved.sizes(), " and type ",
              saved.scalar_type(), " is not u8 [n]");
  const at::Tensor bytes = saved.contiguous();
  HolderPtr holder;
  with_torch_errors([&] {
    holder = c10::make_intrusive<DecodeHolder>(
        DecodeState::load({static_cast<const std::byte*>(bytes.data_ptr()),
                           static_cast<std::size_t>(bytes.numel())}));
  });
  return holder;
}

}  // namespace
}  // namespace polyattn

TORCH_LIBRARY_FRAGMENT(polyattn, m) {
  using polyattn::DecodeHolder;
  m.class_<DecodeHolder>("DecodeState")
      .def(torch::init(&polyattn::make_holder))
      .def_static("load", &polyattn::load_holder)
      .def("step", &DecodeHolder::step)
      .def("append", &DecodeHolder::append)
      .def("lengths", &DecodeHolder::lengths)
      .def("folded", &DecodeHolder::folded)
      .def("nbytes", &DecodeHolder::nbytes)
      .def("fork", &DecodeHolder::fork)
      .def("select", &DecodeHolder::select)
      .def("save", &DecodeHolder::save)
      .def("shape", &DecodeHolder::shape)
      .def("activation", &DecodeHolder::activation);
}
