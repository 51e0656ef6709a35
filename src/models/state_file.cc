#include "polyattn/models/state_file.h"

#include <array>
#include <cstring>
#include <utility>

namespace polyattn::models {
namespace {

using io::TensorType;

// The types that torch and the format have in common.
constexpr std::array kTypes = {
    std::pair{TensorType::kBool, torch::kBool},
    std::pair{TensorType::kU8, torch::kUInt8},
    std::pair{TensorType::kI8, torch::kInt8},
    std::pair{TensorType::kI16, torch::kInt16},
    std::pair{TensorType::kI32, torch::kInt32},
    std::pair{TensorType::kI64, torch::kInt64},
    std::pair{TensorType::kF16, torch::kFloat16},
    std::pair{TensorType::kBF16, torch::kBFloat16},
    std::pair{TensorType::kF32, torch::kFloat32},
    std::pair{TensorType::kF64, torch::kFloat64},
};

torch::Tensor copy_of(const io::TensorView& view,
                      const std::filesystem::path& path) {
  for (const auto& [file_type, torch_type] : kTypes) {
    if (file_type != view.type) continue;
    torch::Tensor tensor = torch::empty(view.shape, torch_type);
    if (!view.bytes.empty()) {
      std::memcpy(tensor.data_ptr(), view.bytes.data(), view.bytes.size());
    }
    // Bytes other than 0 and 1 are no values of bool.
    if (torch_type != torch::kBool) return tensor;
    return tensor.view(torch::kUInt8).ne(0);
  }
  throw io::SafetensorsError(path.string(),
                             "tensor " + view.name + " has type " +
                                 std::string(io::name_of(view.type)) +
                                 ", which torch does not have");
}

TensorType file_type_of(const std::string& name, const torch::Tensor& tensor,
                        const std::filesystem::path& path) {
  for (const auto& [file_type, torch_type] : kTypes) {
    if (torch_type == tensor.scalar_type()) return file_type;
  }
  throw io::SafetensorsError(path.string(),
                             "tensor " + name + " has type " +
                                 c10::toString(tensor.scalar_type()) +
                                 ", which the format does not have");
}

}  // namespace

NamedTensors load_tensors(const std::filesystem::path& path) {
  const io::SafetensorsFile file(path);
  NamedTensors tensors;
  for (const io::TensorView& view : file.tensors()) {
    tensors[view.name] = copy_of(view, path);
  }
  return tensors;
}

void save_tensors(const std::filesystem::path& path,
                  const NamedTensors& tensors, const io::Metadata& metadata) {
  NamedTensors dense;  // keeps what the views point to
  std::vector<io::TensorView> views;
  for (const auto& [name, tensor] : tensors) {
    const torch::Tensor& rows = dense[name] =
        tensor.detach().to(torch::kCPU).contiguous();
    views.push_back({.name = name,
                     .type = file_type_of(name, rows, path),
                     .shape = rows.sizes().vec(),
                     .bytes = {static_cast<const std::byte*>(rows.data_ptr()),
                               rows.nbytes()}});
  }
  io::write_safetensors(path, views, metadata);
}

}  // namespace polyattn::models
