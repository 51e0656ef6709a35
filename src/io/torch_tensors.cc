// The dictionary of tensors that is meant, and whether each lies in its
// storage.
#include "io/torch_tensors.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/message.h"
#include "io/tensor_type.h"

namespace polyattn::io {
namespace {

using Object = PickleObject;
using Kind = PickleKind;

constexpr std::size_t kMaxDimensions = 64;
constexpr int kMaxNesting = 4;

constexpr std::array<std::pair<std::string_view, TensorType>, 10> kTypeNames = {
    {{"torch.BoolStorage", TensorType::kBool},
     {"torch.ByteStorage", TensorType::kU8},
     {"torch.CharStorage", TensorType::kI8},
     {"torch.ShortStorage", TensorType::kI16},
     {"torch.IntStorage", TensorType::kI32},
     {"torch.LongStorage", TensorType::kI64},
     {"torch.HalfStorage", TensorType::kF16},
     {"torch.BFloat16Storage", TensorType::kBF16},
     {"torch.FloatStorage", TensorType::kF32},
     {"torch.DoubleStorage", TensorType::kF64}}};

const Object* find_item(const Object& dict, std::string_view key) {
  for (std::size_t i = 0; i + 1 < dict.items.size(); i += 2) {
    const Object& found = *dict.items[i];
    if (found.kind == Kind::kText && found.text == key) {
      return dict.items[i + 1];
    }
  }
  return nullptr;
}

// Turns the objects of a pickle into tensors.
class TensorsOfPickle {
 public:
  TensorsOfPickle(const std::vector<ZipMember>& members, std::string prefix,
                  std::string_view source)
      : prefix_(std::move(prefix)), source_(source) {
    for (const ZipMember& member : members) bytes_[member.name] = member.bytes;
  }

  TorchTensors read(const Object& root) {
    const Object& dict = weights_in(root);
    std::set<std::string_view> names;
    for (std::size_t i = 0; i + 1 < dict.items.size(); i += 2) {
      const Object& name = *dict.items[i];
      if (name.kind != Kind::kText) refuse("a name of a tensor is no text");
      if (!names.insert(name.text).second) {
        refuse(base::concat(base::in_quotes(name.text), " is there twice"));
      }
      if (dict.items[i + 1]->kind != Kind::kTensor) {
        refuse(base::concat(base::in_quotes(name.text), " is no tensor"));
      }
      add(name.text, *dict.items[i + 1]);
    }
    drop_module_prefix();
    return std::move(found_);
  }

 private:
  [[noreturn]] void refuse(std::string_view message) const {
    throw TorchFileError(source_, message);
  }

  // The dictionary of the tensors, which may lie in others.
  const Object& weights_in(const Object& root) const {
    constexpr std::array<std::string_view, 3> kWrappers = {
        "model", "state_dict", "model_state_dict"};
    const Object* dict = &root;
    for (int depth = 0; depth <= kMaxNesting; ++depth) {
      if (dict->kind != Kind::kDict) {
        refuse("it holds no dictionary of tensors; save a state_dict");
      }
      const Object* inner = nullptr;
      for (const std::string_view wrapper : kWrappers) {
        const Object* const found = find_item(*dict, wrapper);
        if (found == nullptr || found->kind != Kind::kDict) continue;
        if (inner != nullptr) {
          refuse("it holds several models: save the state_dict of one");
        }
        inner = found;
      }
      if (inner == nullptr) return *dict;
      dict = inner;
    }
    refuse("its dictionaries are nested too deeply");
  }

  void add(const std::string& name, const Object& made) {
    const std::string what = base::concat("tensor ", base::in_quotes(name));
    const auto& items = made.items;
    if (items[0]->kind != Kind::kStorage || items[1]->kind != Kind::kInteger) {
      refuse(what + " has no storage");
    }
    TorchTensor tensor{.name = name,
                       .storage = storage_of(*items[0], what),
                       .offset = items[1]->number,
                       .shape = numbers(*items[2], what),
                       .strides = numbers(*items[3], what)};
    if (tensor.shape.size() != tensor.strides.size()) {
      refuse(base::concat(what, " has ", tensor.shape.size(),
                          " dimensions and ", tensor.strides.size(),
                          " strides"));
    }
    check_extent(tensor, what);
    found_.tensors.push_back(std::move(tensor));
  }

  std::vector<std::int64_t> numbers(const Object& tuple,
                                    const std::string& what) const {
    if (tuple.kind != Kind::kTuple || tuple.items.size() > kMaxDimensions) {
      refuse(what + " has no shape or strides");
    }
    std::vector<std::int64_t> result;
    for (const Object* item : tuple.items) {
      if (item->kind != Kind::kInteger || item->number < 0) {
        refuse(what + " has a size or stride that is no count");
      }
      result.push_back(item->number);
    }
    return result;
  }

  TensorType type_of(const std::string& global, const std::string& what) const {
    for (const auto& [name, type] : kTypeNames) {
      if (name == global) return type;
    }
    refuse(base::concat(what, " has type ", base::in_quotes(global),
                        ", which is not supported"));
  }

  // Its index. The same file is the same storage.
  std::size_t storage_of(const Object& made, const std::string& what) {
    const std::string& key = made.items[2]->text;
    const TensorType type = type_of(made.items[1]->text, what);
    const std::string name = prefix_ + "data/" + key;
    const auto file = bytes_.find(name);
    if (file == bytes_.end()) {
      refuse(base::concat(what, " lies in ", base::in_quotes(name),
                          ", which is missing"));
    }
    const auto count = made.items[4]->number;
    const std::array shape = {count};
    const auto size = count < 0 ? std::nullopt : byte_count(type, shape);
    if (size != file->second.size()) {
      refuse(base::concat(what, ": its storage ", base::in_quotes(name),
                          " has ", file->second.size(), " bytes, not those of ",
                          count, " elements of ", name_of(type)));
    }
    const auto [at, is_new] = indices_.try_emplace(key, found_.storages.size());
    if (is_new) found_.storages.push_back({key, type, file->second});
    if (found_.storages[at->second].type != type) {
      refuse(base::concat(what, ": its storage ", base::in_quotes(name),
                          " is of two types"));
    }
    return at->second;
  }

  void check_extent(const TorchTensor& tensor, const std::string& what) const {
    const TorchStorage& storage = found_.storages[tensor.storage];
    const std::uint64_t elements = storage.bytes.size() / size_of(storage.type);
    const auto bytes = byte_count(storage.type, tensor.shape);
    if (!bytes || *bytes > storage.bytes.size()) {
      refuse(base::concat(
          what, " of shape ", base::shortened(to_string(tensor.shape)),
          " has more elements than the ", elements, " of its storage"));
    }
    // Where its last element lies, plus one. A number that is too large stays.
    std::uint64_t end = *bytes == 0 ? 0 : 1;
    const auto grow = [&](std::uint64_t by) {
      end = by > elements - std::min(end, elements) ? elements + 1 : end + by;
    };
    grow(static_cast<std::uint64_t>(std::max<std::int64_t>(tensor.offset, 0)));
    for (std::size_t i = 0; *bytes > 0 && i < tensor.shape.size(); ++i) {
      const auto steps = static_cast<std::uint64_t>(tensor.shape[i] - 1);
      const auto stride = static_cast<std::uint64_t>(tensor.strides[i]);
      if (steps == 0 || stride == 0) continue;
      grow(stride > elements / steps ? elements + 1 : steps * stride);
    }
    if (tensor.offset < 0 || end > elements) {
      refuse(base::concat(
          what, " at offset ", tensor.offset, " of shape ",
          base::shortened(to_string(tensor.shape)), " and strides ",
          base::shortened(to_string(tensor.strides)), " reaches beyond the ",
          elements, " elements of its storage"));
    }
  }

  void drop_module_prefix() {
    constexpr std::string_view kPrefix = "module.";
    const bool all = std::all_of(
        found_.tensors.begin(), found_.tensors.end(),
        [&](const TorchTensor& t) { return t.name.starts_with(kPrefix); });
    if (!all) return;
    for (TorchTensor& tensor : found_.tensors)
      tensor.name.erase(0, kPrefix.size());
  }

  std::map<std::string, std::span<const std::byte>> bytes_;
  std::map<std::string, std::size_t> indices_;
  std::string prefix_;
  std::string_view source_;
  TorchTensors found_;
};

}  // namespace

TorchTensors torch_tensors(const PickleObject& root,
                           const std::vector<ZipMember>& members,
                           const std::string& folder, std::string_view source) {
  return TensorsOfPickle(members, folder, source).read(root);
}

}  // namespace polyattn::io
