#include "polyattn/models/weights.h"

#include <set>
#include <sstream>

namespace polyattn::models {
namespace {

std::string joined(const std::string& op,
                   const std::vector<std::string>& problems) {
  std::ostringstream text;
  text << '[' << op << "] the tensors do not fit the module, "
       << problems.size()
       << (problems.size() == 1 ? " problem:" : " problems:");
  for (const std::string& problem : problems) text << "\n  " << problem;
  return text.str();
}

// The shape that the file should have for a tensor of the module.
std::vector<std::int64_t> file_shape(const torch::Tensor& ours, Layout layout) {
  std::vector<std::int64_t> shape = ours.sizes().vec();
  if (layout == Layout::kTransposed) std::swap(shape.at(0), shape.at(1));
  if (layout == Layout::kLeadingOne) shape.insert(shape.begin(), 1);
  if (layout == Layout::kTrailingOnes) shape.insert(shape.end(), 2, 1);
  return shape;
}

torch::Tensor as_ours(const torch::Tensor& theirs, Layout layout) {
  if (layout == Layout::kTransposed) return theirs.t();
  if (layout == Layout::kLeadingOne) return theirs.squeeze(0);
  if (layout == Layout::kTrailingOnes) return theirs.flatten();
  return theirs;
}

bool types_agree(const torch::Tensor& a, const torch::Tensor& b) {
  return (a.is_floating_point() && b.is_floating_point()) ||
         a.scalar_type() == b.scalar_type();
}

// None, or one.
std::vector<std::string> problems_of(const Mapped& mapped,
                                     const NamedTensors& state,
                                     const NamedTensors& tensors) {
  std::ostringstream text;
  const auto ours = state.find(mapped.ours);
  const auto theirs = tensors.find(mapped.theirs);
  if (ours == state.end()) {
    text << "no place: " << mapped.theirs << " (the module has no "
         << mapped.ours << ')';
    return {text.str()};
  }
  if (theirs == tensors.end()) {
    text << "missing: " << mapped.theirs;
    if (mapped.theirs != mapped.ours) text << " (for " << mapped.ours << ')';
    return {text.str()};
  }
  const auto expected = file_shape(ours->second, mapped.layout);
  if (theirs->second.sizes() != torch::IntArrayRef(expected)) {
    text << "misshapen: " << mapped.theirs << " is " << theirs->second.sizes()
         << ", not " << torch::IntArrayRef(expected);
    return {text.str()};
  }
  if (!types_agree(theirs->second, ours->second)) {
    text << "wrong type: " << mapped.theirs << " is "
         << theirs->second.scalar_type() << ", not "
         << ours->second.scalar_type();
    return {text.str()};
  }
  return {};
}

// Parameters which public models do not have and whose first values make no
// difference: those of the formula, 1/sqrt(D), and the identity.
bool may_stay(const std::string& name) {
  return name.ends_with("score_scale") || name.ends_with("coefficients") ||
         name.ends_with("short_conv.weight");
}

std::vector<std::string> untold_tensors(const NamedTensors& state,
                                        const Mapping& mapping) {
  std::set<std::string> told;
  for (const Mapped& mapped : mapping.tensors) told.insert(mapped.ours);
  std::vector<std::string> problems;
  for (const auto& [name, tensor] : state) {
    if (told.contains(name) || may_stay(name)) continue;
    problems.push_back("no source: nothing is mapped to " + name);
  }
  return problems;
}

std::vector<std::string> unequal_tensors(const NamedTensors& tensors,
                                         const Mapping& mapping) {
  std::vector<std::string> problems;
  for (const auto& [a, b] : mapping.equal) {
    const auto first = tensors.find(a), second = tensors.find(b);
    if (first == tensors.end() || second == tensors.end()) continue;
    const auto& x = first->second;
    if (torch::equal(x, second->second.to(x.scalar_type()))) continue;
    problems.push_back("unequal: " + a + " and " + b +
                       ", of which the module has one");
  }
  return problems;
}

// Those of floating point to the precision of f32.
bool same_numbers(const torch::Tensor& theirs, const torch::Tensor& ours) {
  if (!types_agree(theirs, ours) || theirs.numel() != ours.numel()) {
    return false;
  }
  const auto flat = [](const torch::Tensor& t) {
    return t.flatten().to(torch::kCPU, torch::kDouble);
  };
  return torch::allclose(flat(theirs), flat(ours), 1e-6, 1e-6);
}

std::vector<std::string> unknown_tensors(const NamedTensors& tensors,
                                         const Mapping& mapping) {
  std::vector<std::string> problems;
  for (const auto& [name, numbers] : mapping.known) {
    const auto theirs = tensors.find(name);
    if (theirs == tensors.end() || same_numbers(theirs->second, numbers)) {
      continue;
    }
    std::ostringstream text;
    text << "unlike: " << name << ' ' << theirs->second.sizes()
         << " does not hold what this model has there";
    problems.push_back(text.str());
  }
  return problems;
}

std::vector<std::string> extra_tensors(const NamedTensors& tensors,
                                       const Mapping& mapping) {
  std::set<std::string> known(mapping.ignored.begin(), mapping.ignored.end());
  for (const Mapped& mapped : mapping.tensors) known.insert(mapped.theirs);
  for (const auto& [name, numbers] : mapping.known) known.insert(name);
  std::vector<std::string> problems;
  for (const auto& [name, tensor] : tensors) {
    if (known.contains(name)) continue;
    std::ostringstream text;
    text << "extra: " << name << ' ' << tensor.sizes();
    problems.push_back(text.str());
  }
  return problems;
}

}  // namespace

WeightsError::WeightsError(const std::string& op,
                           std::vector<std::string> problems)
    : std::invalid_argument(joined(op, problems)),
      problems_(std::move(problems)) {}

NamedTensors state_of(const torch::nn::Module& module) {
  NamedTensors state;
  for (const auto& item : module.named_parameters()) {
    state[item.key()] = item.value().detach();
  }
  for (const auto& item : module.named_buffers()) {
    state[item.key()] = item.value().detach();
  }
  return state;
}

void load_mapped(const std::string& op, torch::nn::Module& module,
                 const NamedTensors& tensors, const Mapping& mapping) {
  const NamedTensors state = state_of(module);
  std::vector<std::string> problems;
  const auto add = [&](const std::vector<std::string>& more) {
    problems.insert(problems.end(), more.begin(), more.end());
  };
  for (const Mapped& mapped : mapping.tensors) {
    add(problems_of(mapped, state, tensors));
  }
  add(untold_tensors(state, mapping));
  add(extra_tensors(tensors, mapping));
  add(unequal_tensors(tensors, mapping));
  add(unknown_tensors(tensors, mapping));
  if (!problems.empty()) throw WeightsError(op, std::move(problems));
  const torch::NoGradGuard no_grad;
  for (const Mapped& mapped : mapping.tensors) {
    torch::Tensor ours = state.at(mapped.ours);
    ours.copy_(as_ours(tensors.at(mapped.theirs), mapped.layout));
  }
}

void load_state(torch::nn::Module& module, const NamedTensors& tensors) {
  Mapping mapping;
  for (const auto& [name, tensor] : state_of(module)) {
    mapping.tensors.push_back({name, name});
  }
  load_mapped("load_state", module, tensors, mapping);
}

}  // namespace polyattn::models
