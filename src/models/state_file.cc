#include "polyattn/models/state_file.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "polyattn/io/torch_file.h"

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

torch::Tensor copy_of(std::span<const std::byte> bytes,
                      std::vector<std::int64_t> shape, torch::ScalarType type) {
  torch::Tensor tensor = torch::empty(shape, type);
  if (!bytes.empty()) {
    std::memcpy(tensor.data_ptr(), bytes.data(), bytes.size());
  }
  // Bytes other than 0 and 1 are no values of bool.
  return type == torch::kBool ? tensor.view(torch::kUInt8).ne(0) : tensor;
}

torch::Tensor copy_of(const io::TensorView& view,
                      const std::filesystem::path& path) {
  for (const auto& [file_type, torch_type] : kTypes) {
    if (file_type == view.type) {
      return copy_of(view.bytes, view.shape, torch_type);
    }
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

// The types of torch.save are all torch's.
torch::Tensor copy_of(const io::TorchStorage& storage) {
  const auto found = std::find_if(
      kTypes.begin(), kTypes.end(),
      [&](const auto& types) { return types.first == storage.type; });
  const auto count = static_cast<std::int64_t>(storage.bytes.size() /
                                               io::size_of(storage.type));
  return copy_of(storage.bytes, {count}, found->second);
}

NamedTensors load_torch_file(const std::filesystem::path& path) {
  const io::TorchFile file(path);
  std::vector<torch::Tensor> storages;
  for (const io::TorchStorage& storage : file.storages()) {
    storages.push_back(copy_of(storage));
  }
  NamedTensors tensors;
  for (const io::TorchTensor& view : file.tensors()) {
    tensors[view.name] = storages[view.storage].as_strided(
        view.shape, view.strides, view.offset);
  }
  return tensors;
}

}  // namespace

NamedTensors load_tensors(const std::filesystem::path& path) {
  if (io::is_torch_file(path)) return load_torch_file(path);
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
