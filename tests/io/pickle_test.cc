// The opcodes that are read, and those that are refused.
#include "io/pickle.h"

#include <gtest/gtest.h>

#include "torch_file_bytes.h"

namespace polyattn::io::test {
namespace pickle_test {

// As Python would print it.
std::string printed(const PickleObject& object) {
  const auto list = [&](const char* begin, const char* end) {
    std::string text = begin;
    for (const PickleObject* item : object.items) text += printed(*item) + ",";
    return text + end;
  };
  switch (object.kind) {
    case PickleKind::kNone:
      return "None";
    case PickleKind::kBool:
      return object.number != 0 ? "True" : "False";
    case PickleKind::kInteger:
      return std::to_string(object.number);
    case PickleKind::kFloat:
      return "float";
    case PickleKind::kText:
    case PickleKind::kGlobal:
      return object.text;
    case PickleKind::kTuple:
      return list("(", ")");
    case PickleKind::kList:
      return list("[", "]");
    case PickleKind::kDict:
      return list("{", "}");
    case PickleKind::kStorage:
      return list("storage(", ")");
    case PickleKind::kTensor:
      return list("tensor(", ")");
  }
  return "?";
}

std::string read(std::string_view ops) {
  const std::string bytes = pickle_of(ops);
  const Pickle pickle(bytes_of(bytes), "x");
  return printed(pickle.root());
}

std::string message(std::string_view ops) {
  const std::string found =
      polyattn::test::message_of<TorchFileError>([&] { read(ops); });
  const std::string before = "[torch_file] x: the pickle of its names: ";
  return found.starts_with(before) ? found.substr(before.size()) : found;
}

TEST(Pickle, ReadsValues) {
  EXPECT_EQ(read("N"), "None");
  EXPECT_EQ(read("\x88"), "True");
  EXPECT_EQ(read("\x89"), "False");
  EXPECT_EQ(read("K\xff"), "255");
  EXPECT_EQ(read("M\xfe\xff"), "65534");
  EXPECT_EQ(read("J\xfe\xff\xff\xff"), "-2");
  EXPECT_EQ(read(std::string("\x8a\0", 2)), "0");
  EXPECT_EQ(read("\x8a\x01\x80"), "-128");
  EXPECT_EQ(read("\x8a\x05\xff\xff\xff\xff\x7f"), "549755813887");
  EXPECT_EQ(read(integer_op(INT64_MIN)), "-9223372036854775808");
  EXPECT_EQ(read("G12345678"), "float");
  EXPECT_EQ(read(text_op("name")), "name");
  EXPECT_EQ(read("\x8c\x02hi"), "hi");
}

TEST(Pickle, ReadsWhatHoldsOthers) {
  EXPECT_EQ(read(")"), "()");
  EXPECT_EQ(read("K\1\x85"), "(1,)");
  EXPECT_EQ(read("K\1K\2K\3\x87"), "(1,2,3,)");
  EXPECT_EQ(read("](K\1K\2e"), "[1,2,]");
  EXPECT_EQ(read("]K\1a"), "[1,]");
  EXPECT_EQ(read(dict_op({{"a", "K\1"}, {"b", "]"}})), "{a,1,b,[],}");
  EXPECT_EQ(read("}" + text_op("a") + "N" + "s"), "{a,None,}");
  EXPECT_EQ(read("K\7q\5h\5\x86"), "(7,7,)");
  EXPECT_EQ(read("K\7\x94K\10\x94h\1\x87"), "(7,8,8,)");
  EXPECT_EQ(read("K\7r\1\2\3\4j\1\2\3\4\x86"), "(7,7,)");
  EXPECT_EQ(read("\x95"
                 "12345678K\1"),
            "1");
  // An OrderedDict with an attribute, as state_dict() has it.
  EXPECT_EQ(read(global_op("collections", "OrderedDict") + ")R(" +
                 text_op("a") + "K\1u}" + text_op("_metadata") + "}sb"),
            "{a,1,}");
}

TEST(Pickle, ReadsTensors) {
  const std::string expected =
      "tensor(storage(storage,torch.FloatStorage,0,cpu,6,),0,(2,3,),(3,1,),"
      "False,{},)";
  EXPECT_EQ(read(tensor_op()), expected);
  EXPECT_EQ(read(global_op("torch._utils", "_rebuild_parameter") + tensor_op() +
                 "\x88" + global_op("collections", "OrderedDict") + ")R\x87R"),
            expected);
  // By the opcodes of protocol 4.
  EXPECT_EQ(read("\x8c\x0b"
                 "collections\x8c\x0bOrderedDict\x93)R"),
            "{}");
}

TEST(Pickle, RefusesEveryOtherFunctionByItsName) {
  const auto refusal = [](const std::string& name) {
    return "[torch_file] x: it names \"" + name +
           "\", which weights do not need and which is not run. If you trust "
           "the file, load it with Python and save the state_dict alone";
  };
  EXPECT_EQ(message(global_op("os", "system") + text_op("true") + "\x85R"),
            refusal("os.system"));
  EXPECT_EQ(message(text_op("posix") + text_op("system") + "\x93"),
            refusal("posix.system"));
  EXPECT_EQ(message(global_op("builtins", "eval")), refusal("builtins.eval"));
  EXPECT_EQ(message(global_op("torch.x", "FloatStorage")),
            refusal("torch.x.FloatStorage"));
  EXPECT_EQ(message(global_op("torch._utils", "_rebuild_tensor_v3")),
            refusal("torch._utils._rebuild_tensor_v3"));
  EXPECT_EQ(message(global_op("argparse", "Namespace")),
            refusal("argparse.Namespace"));
  // What calls in other ways.
  for (const std::string op : {"i", "o", "\x81", "\x92", "\x82", "P"}) {
    EXPECT_TRUE(message(op + "os\nsystem\n").starts_with("its opcode ")) << op;
  }
}

TEST(Pickle, RefusesCallsThatAreNone) {
  const std::string rebuild = global_op("torch._utils", "_rebuild_tensor_v2");
  EXPECT_EQ(message("K\1)R"), "it calls what is no function");
  EXPECT_EQ(message(rebuild + ")R"),
            "it calls \"torch._utils._rebuild_tensor_v2\" with 0 arguments");
  EXPECT_EQ(message(global_op("torch", "FloatStorage") + ")R"),
            "it calls \"torch.FloatStorage\" with 0 arguments");
  EXPECT_EQ(message(global_op("collections", "OrderedDict") + "]\x85R"),
            "it calls \"collections.OrderedDict\" with 1 arguments");
  EXPECT_EQ(message(rebuild + "]R"), "it needs a tuple of arguments");
  EXPECT_EQ(message("NQ"), "it refers to something that is no storage");
  EXPECT_EQ(message("(" + text_op("storage") + "NNNNtQ"),
            "it refers to something that is no storage");
}

TEST(Pickle, RefusesWhatDoesNotHoldTogether) {
  EXPECT_EQ(message(""), "it ends too early");
  EXPECT_EQ(message("NN"), "it ends too early");
  EXPECT_EQ(message("N("), "it ends too early");
  EXPECT_EQ(message("\x85"), "its stack is empty");
  EXPECT_EQ(message("K\1(\x85"), "its stack is empty");  // below a mark
  EXPECT_EQ(message("t"), "a mark is missing");
  EXPECT_EQ(message("q\1"), "its stack is empty");
  EXPECT_EQ(message("h\1"), "it recalls what it did not keep");
  EXPECT_EQ(message("Na"), "its stack is empty");
  EXPECT_EQ(message("NNa"), "it needs a list to fill");
  EXPECT_EQ(message("]NNs"), "it needs a dictionary to fill");
  EXPECT_EQ(message("}(Nu"), "a key has no value");
  EXPECT_EQ(message("N}b"), "it needs a dictionary to give attributes to");
  EXPECT_EQ(message("NN\x93"), "a function has no name");
  EXPECT_EQ(message("\x8a\x09"
                    "123456789"),
            "an integer has more than 64 bits");
  EXPECT_EQ(message("X\xff\xff\xff\xff"), "it is cut short");
  EXPECT_EQ(message("cos"), "it is cut short");
}

// A list that holds itself is read once.
TEST(Pickle, KeepsACircle) {
  const std::string bytes = pickle_of("]q\1h\1a");
  const Pickle pickle(bytes_of(bytes), "x");
  ASSERT_EQ(pickle.root().items.size(), 1U);
  EXPECT_EQ(pickle.root().items[0], &pickle.root());
}

TEST(Pickle, HasLimits) {
  EXPECT_EQ(message(std::string(4'000'001, ']')),
            "it has more than 4000000 objects");
  EXPECT_EQ(message(std::string(4'000'001, '(')), "it has too many marks");
  const std::string large(kMaxPickleBytes - 2, 'N');
  EXPECT_EQ(message(large),
            "[torch_file] x: its pickle has 16777217 bytes > 16777216");
}

}  // namespace pickle_test
}  // namespace polyattn::io::test
