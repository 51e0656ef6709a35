// What a pickle of torch.save says, without running it: the opcodes of Python's
// protocols 2 to 5 that such files have, and four functions by name, which are
// not called but noted down. Anything else is refused.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace polyattn::io {

enum class PickleKind : std::uint8_t {
  kNone,
  kBool,
  kInteger,
  kFloat,    // its value is not kept
  kText,     // UTF-8, or not: nobody has looked
  kGlobal,   // text: "module.name"
  kTuple,    // items
  kList,     // items
  kDict,     // items: key, value, key, value; a key may occur twice
  kStorage,  // items: "storage", type, key, device, count of elements
  kTensor,   // items: storage, offset, shape, strides, and what we do not need
};

// Belongs to the Pickle. What it points to may be the object itself: lists and
// dictionaries can.
struct PickleObject {
  PickleKind kind = PickleKind::kNone;
  std::int64_t number = 0;
  std::string text;
  std::vector<const PickleObject*> items;
};

class Pickle {
 public:
  // Throws TorchFileError.
  Pickle(std::span<const std::byte> bytes, std::string_view source);
  Pickle(const Pickle&) = delete;
  Pickle& operator=(const Pickle&) = delete;

  const PickleObject& root() const { return *root_; }

 private:
  std::deque<PickleObject> objects_;
  const PickleObject* root_ = nullptr;
};

}  // namespace polyattn::io
