// A machine with a stack, marks on it, and a memo of what was made.
#include "io/pickle.h"

#include <algorithm>
#include <array>
#include <unordered_map>

#include "base/message.h"
#include "io/pickle_bytes.h"
#include "polyattn/io/torch_file.h"

namespace polyattn::io {
namespace {

// Objects and memos, which take more memory than the bytes that ask for them.
constexpr std::size_t kMaxObjects = 4'000'000;

// The types of storages, which a pickle may name as well.
bool is_storage_type(std::string_view global) {
  return global.starts_with("torch.") && global.ends_with("Storage") &&
         global.find('.', 6) == std::string_view::npos;
}

constexpr std::string_view kOrderedDict = "collections.OrderedDict";
constexpr std::string_view kRebuildTensor = "torch._utils._rebuild_tensor_v2";
constexpr std::string_view kRebuildParameter =
    "torch._utils._rebuild_parameter";

class Machine {
 public:
  Machine(std::span<const std::byte> bytes, std::string_view source,
          std::deque<PickleObject>& objects)
      : bytes_(bytes, source), objects_(objects) {}

  const PickleObject* run() {
    while (true) {
      const auto opcode = static_cast<unsigned char>(bytes_.take(1).front());
      if (opcode == kStop) break;
      if (!push_value(opcode) && !use_memo(opcode) && !combine(opcode)) {
        refuse(base::concat("its opcode ", int{opcode}, " at byte ",
                            bytes_.at() - 1,
                            " is none that torch.save writes for weights"));
      }
    }
    if (stack_.size() != 1 || !marks_.empty()) refuse("it ends too early");
    return stack_.back();
  }

 private:
  using Object = PickleObject;
  using Kind = PickleKind;

  [[noreturn]] void refuse(std::string_view reason) const {
    bytes_.refuse(reason);
  }

  Object* make(Kind kind) {
    if (objects_.size() == kMaxObjects) {
      refuse(base::concat("it has more than ", kMaxObjects, " objects"));
    }
    objects_.emplace_back().kind = kind;
    return &objects_.back();
  }

  void push(Object* object) { stack_.push_back(object); }

  void push_number(Kind kind, std::int64_t number) {
    Object* const object = make(kind);
    object->number = number;
    push(object);
  }

  void push_text(Kind kind, std::string text) {
    Object* const object = make(kind);
    object->text = std::move(text);
    push(object);
  }

  void push_global(std::string name) {
    if (name != kOrderedDict && name != kRebuildTensor &&
        name != kRebuildParameter && !is_storage_type(name)) {
      throw TorchFileError(
          bytes_.source(),
          base::concat("it names ", base::in_quotes(name),
                       ", which weights do not need and which is not run. If "
                       "you trust the file, load it with Python and save the "
                       "state_dict alone"));
    }
    push_text(Kind::kGlobal, std::move(name));
  }

  // Above the last mark.
  Object* pop() {
    if (stack_.size() <= (marks_.empty() ? 0 : marks_.back())) {
      refuse("its stack is empty");
    }
    Object* const top = stack_.back();
    stack_.pop_back();
    return top;
  }

  Object* top(Kind kind, const char* what) {
    Object* const object = pop();
    if (object->kind != kind) refuse(base::concat("it needs ", what));
    push(object);
    return object;
  }

  // What lies above the last mark, which goes.
  std::vector<const Object*> pop_to_mark() {
    if (marks_.empty()) refuse("a mark is missing");
    const auto first =
        stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back());
    std::vector<const Object*> items(first, stack_.end());
    stack_.erase(first, stack_.end());
    marks_.pop_back();
    return items;
  }

  std::vector<const Object*> pop_items(std::size_t count) {
    std::vector<const Object*> items(count);
    for (std::size_t i = count; i-- > 0;) items[i] = pop();
    return items;
  }

  void push_tuple(std::vector<const Object*> items) {
    Object* const tuple = make(Kind::kTuple);
    tuple->items = std::move(items);
    push(tuple);
  }

  // Opcodes that add a value to the stack.
  bool push_value(unsigned char opcode) {
    switch (opcode) {
      case kPushNone:
        push(make(Kind::kNone));
        return true;
      case kNewTrue:
      case kNewFalse:
        push_number(Kind::kBool, opcode == kNewTrue ? 1 : 0);
        return true;
      case kBinInt:
        push_number(Kind::kInteger, bytes_.signed_number(4));
        return true;
      case kBinInt1:
      case kBinInt2:
        push_number(Kind::kInteger, static_cast<std::int64_t>(bytes_.number(
                                        opcode == kBinInt1 ? 1 : 2)));
        return true;
      case kLong1:
        push_number(Kind::kInteger, bytes_.signed_number(bytes_.number(1)));
        return true;
      case kBinFloat:
        bytes_.take(8);
        push(make(Kind::kFloat));
        return true;
      case kBinUnicode:
      case kShortBinUnicode:
        push_text(Kind::kText,
                  bytes_.text(bytes_.number(opcode == kBinUnicode ? 4 : 1)));
        return true;
      case kEmptyList:
        push(make(Kind::kList));
        return true;
      case kEmptyDict:
        push(make(Kind::kDict));
        return true;
      case kEmptyTuple:
        push(make(Kind::kTuple));
        return true;
      case kPushGlobal: {
        const std::string module = bytes_.line();
        push_global(module + "." + bytes_.line());
        return true;
      }
      default:
        return false;
    }
  }

  // Opcodes that keep a value or bring it back, and those that say nothing.
  bool use_memo(unsigned char opcode) {
    switch (opcode) {
      case kProto:
        bytes_.take(1);
        return true;
      case kFrame:
        bytes_.take(8);
        return true;
      case kMark:
        if (marks_.size() == kMaxObjects) refuse("it has too many marks");
        marks_.push_back(stack_.size());
        return true;
      case kBinPut:
      case kLongBinPut:
        remember(bytes_.number(opcode == kBinPut ? 1 : 4));
        return true;
      case kMemoize:
        remember(memo_.size());
        return true;
      case kBinGet:
      case kLongBinGet: {
        const auto found = memo_.find(bytes_.number(opcode == kBinGet ? 1 : 4));
        if (found == memo_.end()) refuse("it recalls what it did not keep");
        push(found->second);
        return true;
      }
      default:
        return false;
    }
  }

  void remember(std::uint64_t index) {
    if (memo_.size() == kMaxObjects) refuse("it keeps too many objects");
    Object* const object = pop();
    push(object);
    memo_[index] = object;
  }

  // Opcodes that make one value of several.
  bool combine(unsigned char opcode) {
    switch (opcode) {
      case kTuple1:
      case kTuple2:
      case kTuple3:
        push_tuple(pop_items(opcode - kTuple1 + 1U));
        return true;
      case kMakeTuple:
        push_tuple(pop_to_mark());
        return true;
      case kAppend:
        add(Kind::kList, pop_items(1));
        return true;
      case kAppends:
        add(Kind::kList, pop_to_mark());
        return true;
      case kSetItem:
        add(Kind::kDict, pop_items(2));
        return true;
      case kSetItems:
        add(Kind::kDict, pop_to_mark());
        return true;
      case kStackGlobal: {
        const auto names = pop_items(2);
        if (names[0]->kind != Kind::kText || names[1]->kind != Kind::kText) {
          refuse("a function has no name");
        }
        push_global(names[0]->text + "." + names[1]->text);
        return true;
      }
      case kBinPersId:
        make_storage();
        return true;
      case kReduce:
        reduce();
        return true;
      case kBuild:
        // Of an OrderedDict: its attributes, the _metadata of a state_dict.
        pop();
        top(Kind::kDict, "a dictionary to give attributes to");
        return true;
      default:
        return false;
    }
  }

  void add(Kind kind, const std::vector<const Object*>& items) {
    const bool dict = kind == Kind::kDict;
    if (dict && items.size() % 2 != 0) refuse("a key has no value");
    Object* const target =
        top(kind, dict ? "a dictionary to fill" : "a list to fill");
    target->items.insert(target->items.end(), items.begin(), items.end());
  }

  void make_storage() {
    const Object* const id = pop();
    constexpr std::array kKinds = {Kind::kText, Kind::kGlobal, Kind::kText,
                                   Kind::kText, Kind::kInteger};
    const bool right =
        id->kind == Kind::kTuple &&
        std::equal(
            id->items.begin(), id->items.end(), kKinds.begin(), kKinds.end(),
            [](const Object* item, Kind kind) { return item->kind == kind; });
    if (!right || id->items[0]->text != "storage" ||
        !is_storage_type(id->items[1]->text)) {
      refuse("it refers to something that is no storage");
    }
    Object* const storage = make(Kind::kStorage);
    storage->items = id->items;
    push(storage);
  }

  void reduce() {
    Object* const arguments = top(Kind::kTuple, "a tuple of arguments");
    pop();
    const Object* const function = pop();
    const auto& items = arguments->items;
    const std::string& name = function->text;
    if (function->kind != Kind::kGlobal) refuse("it calls what is no function");
    if (name == kOrderedDict && items.empty()) {
      push(make(Kind::kDict));
    } else if (name == kRebuildTensor &&
               (items.size() == 6 || items.size() == 7)) {
      Object* const tensor = make(Kind::kTensor);
      tensor->items = items;
      push(tensor);
    } else if (name == kRebuildParameter && items.size() == 3 &&
               items[0]->kind == Kind::kTensor) {
      Object* const parameter = make(Kind::kTensor);
      parameter->items = items[0]->items;
      push(parameter);
    } else {
      refuse(base::concat("it calls ", base::in_quotes(name), " with ",
                          items.size(), " arguments"));
    }
  }

  PickleBytes bytes_;
  std::deque<PickleObject>& objects_;
  std::vector<Object*> stack_;
  std::vector<std::size_t> marks_;  // how high the stack was
  std::unordered_map<std::uint64_t, Object*> memo_;
};

}  // namespace

Pickle::Pickle(std::span<const std::byte> bytes, std::string_view source) {
  if (bytes.size() > kMaxPickleBytes) {
    throw TorchFileError(source, base::concat("its pickle has ", bytes.size(),
                                              " bytes > ", kMaxPickleBytes));
  }
  root_ = Machine(bytes, source, objects_).run();
}

}  // namespace polyattn::io
