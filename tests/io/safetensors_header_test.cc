// Every rule for the header: text that keeps it, text that breaks it, and the
// message.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "polyattn/io/safetensors.h"
#include "safetensors_bytes.h"

namespace polyattn::io::test {
namespace {

// The entry of a tensor of two bytes.
std::string entry(const std::string& name) {
  return "\"" + name + R"(":{"dtype":"U8","shape":[2],"data_offsets":[0,2]})";
}

// Each is a header before two bytes of data.
struct Refused {
  std::string header;
  std::string message;  // behind "[safetensors] x: "
};

void expect_refused(const std::vector<Refused>& list) {
  for (const Refused& c : list) {
    EXPECT_EQ(refusal(file_of(c.header, "ab")), "[safetensors] x: " + c.message)
        << c.header;
  }
}

// The header of one tensor "a" with these fields.
std::string with(const std::string& fields) {
  return braces("\"a\":" + braces(fields));
}

TEST(SafetensorsHeader, AcceptsWhatIsRight) {
  for (const std::string& header : {
           braces(entry("a")),
           braces(entry("a")) + "   ",
           braces(" \n\t\r" + entry("a") + "\n"),
           braces("\"__metadata__\":{}," + entry("a")),
           braces(entry("a") + R"(,"__metadata__":{"k":"v","":""})"),
           with(R"("data_offsets":[0,2],"shape":[1,2,1],"dtype":"BOOL")"),
           with(R"("dtype":"\u00558","shape":[2],"data_offsets":[0,2])"),
           braces(entry("")),
           braces(entry("\xc3\xa9\\u0000\\n")),
       }) {
    EXPECT_EQ(refusal(file_of(header, "ab")), "") << header;
  }
}

TEST(SafetensorsHeader, UnescapesNames) {
  const std::string file = file_of(braces(entry(R"(a\/\u00e9\u0000)")), "ab");
  const auto parsed = SafetensorsFile::parse(as_bytes(file));
  ASSERT_EQ(parsed.tensors().size(), 1U);
  EXPECT_EQ(parsed.tensors()[0].name, std::string("a/\xc3\xa9\0", 5));
}

TEST(SafetensorsHeader, ReadsMetadata) {
  const std::string file =
      file_of(R"({"__metadata__":{"format":"pt","a b":"\"1\""}})", "");
  const auto parsed = SafetensorsFile::parse(as_bytes(file));
  EXPECT_EQ(parsed.metadata(), (Metadata{{"format", "pt"}, {"a b", "\"1\""}}));
  EXPECT_TRUE(parsed.tensors().empty());
}

TEST(SafetensorsHeader, RefusesKeysTwice) {
  expect_refused({
      {braces(entry("a") + "," + entry("a")),
       R"(header has the key "a" twice)"},
      {braces(entry("a") + "," + entry("\\u0061")),
       R"(header has the key "a" twice)"},
      {R"({"__metadata__":{},"__metadata__":{}})",
       R"(header has the key "__metadata__" twice)"},
      {R"({"__metadata__":{"k":"1","k":"1"}})",
       R"(__metadata__ has the key "k" twice)"},
      {with(R"("dtype":"U8","dtype":"U8")"),
       R"(tensor "a" has the key "dtype" twice)"},
      {with(R"("shape":[2],"shape":[2])"),
       R"(tensor "a" has the key "shape" twice)"},
      {with(R"("data_offsets":[0,2],"data_offsets":[0,2])"),
       R"(tensor "a" has the key "data_offsets" twice)"},
  });
}

TEST(SafetensorsHeader, RefusesWrongKeys) {
  const std::string known = "; known are dtype, shape, data_offsets";
  expect_refused({
      {with(R"("dtype":"U8","shape":[2],"data_offsets":[0,2],"b":1)"),
       R"(tensor "a" has the unknown key "b")" + known},
      {with(R"("Dtype":"U8")"),
       R"(tensor "a" has the unknown key "Dtype")" + known},
      {with(""), R"(tensor "a" lacks the key dtype)"},
      {with(R"("shape":[2],"data_offsets":[0,2])"),
       R"(tensor "a" lacks the key dtype)"},
      {with(R"("dtype":"U8","data_offsets":[0,2])"),
       R"(tensor "a" lacks the key shape)"},
      {with(R"("dtype":"U8","shape":[2])"),
       R"(tensor "a" lacks the key data_offsets)"},
      // What was seen in the entry before does not count.
      {braces(entry("a") + R"(,"b":{"dtype":"U8"})"),
       R"(tensor "b" lacks the key shape)"},
  });
}

TEST(SafetensorsHeader, RefusesWrongTypes) {
  const std::string names =
      " is none of BOOL, U8, I8, I16, U16, F16, BF16, I32, U32, F32, F64, I64, "
      "U64";
  expect_refused({
      {R"({"a":[]})", R"(tensor "a" is an array, not an object)"},
      {R"({"a":"b"})", R"(tensor "a" is "b", not an object)"},
      {R"({"a":null})", R"(tensor "a" is null, not an object)"},
      {R"({"__metadata__":null})",
       R"(tensor "__metadata__" is null, not an object)"},
      {R"({"__metadata__":{"k":1}})", R"(__metadata__ "k" is 1, not a string)"},
      {R"({"__metadata__":{"k":null}})",
       R"(__metadata__ "k" is null, not a string)"},
      {R"({"__metadata__":{"k":true}})",
       R"(__metadata__ "k" is true, not a string)"},
      {R"({"__metadata__":{"k":{}}})",
       R"(__metadata__ "k" is an object, not a string)"},
      {R"({"__metadata__":{"k":[]}})",
       R"(__metadata__ "k" is an array, not a string)"},
      {with(R"("dtype":["U8"])"),
       R"(tensor "a": dtype is an array, not a string)"},
      {with(R"("dtype":8)"), R"(tensor "a": dtype is 8, not a string)"},
      {with(R"("dtype":"F8_E4M3")"), R"(tensor "a": dtype "F8_E4M3")" + names},
      {with(R"("dtype":"f32")"), R"(tensor "a": dtype "f32")" + names},
      {with(R"("dtype":"")"), R"(tensor "a": dtype "")" + names},
      {with(R"("shape":{})"),
       R"(tensor "a": shape is an object, not an array)"},
      {with(R"("shape":2)"), R"(tensor "a": shape is 2, not an array)"},
      {with(R"("data_offsets":"0,2")"),
       R"(tensor "a": data_offsets is "0,2", not an array)"},
  });
}

TEST(SafetensorsHeader, RefusesWrongNumbers) {
  const std::string range = ", not an integer from 0 to 9223372036854775807";
  expect_refused({
      {with(R"("shape":[2,-1])"), R"(tensor "a": shape[1] is -1)" + range},
      {with(R"("shape":[-0])"), R"(tensor "a": shape[0] is -0)" + range},
      {with(R"("shape":[2.0])"), R"(tensor "a": shape[0] is 2.0)" + range},
      {with(R"("shape":[2e0])"), R"(tensor "a": shape[0] is 2e0)" + range},
      {with(R"("shape":["2"])"), R"(tensor "a": shape[0] is "2")" + range},
      {with(R"("shape":[null])"), R"(tensor "a": shape[0] is null)" + range},
      {with(R"("shape":[false])"), R"(tensor "a": shape[0] is false)" + range},
      {with(R"("shape":[[2]])"), R"(tensor "a": shape[0] is an array)" + range},
      {with(R"("shape":[{}])"), R"(tensor "a": shape[0] is an object)" + range},
      {with(R"("shape":[9223372036854775808])"),
       R"(tensor "a": shape[0] is 9223372036854775808)" + range},
      {with(R"("shape":[99999999999999999999])"),
       R"(tensor "a": shape[0] is 99999999999999999999)" + range},
      {with(R"("data_offsets":[0,-2])"),
       R"(tensor "a": data_offsets[1] is -2)" + range},
      {with(R"("data_offsets":[0.5,2])"),
       R"(tensor "a": data_offsets[0] is 0.5)" + range},
      {with(R"("data_offsets":[])"),
       R"(tensor "a": data_offsets has 0 numbers, not 2)"},
      {with(R"("data_offsets":[0])"),
       R"(tensor "a": data_offsets has 1 numbers, not 2)"},
      {with(R"("data_offsets":[0,2,2])"),
       R"(tensor "a": data_offsets has more than 2 numbers)"},
  });
}

TEST(SafetensorsHeader, RefusesWhatSurroundsTheObject) {
  const std::string object =
      "header is not an object {...} with spaces behind it: ";
  expect_refused({
      {"", object + "\"\""},
      {"   ", object + "\"   \""},
      {" {}", object + "\" {}\""},
      {"[]", object + "\"[]\""},
      {"\xef\xbb\xbf{}", object + R"("\ufeff{}")"},
      {"{}\n", object + R"("{}\n")"},
      {"{} x", object + "\"{} x\""},
      {"{", object + "\"{\""},
      {std::string("{}\0", 3), "header has a zero byte, at 2 of its 3 bytes"},
      // nlohmann's parser would stop at the zero and accept.
      {std::string("{}\0{}}", 6),
       "header has a zero byte, at 2 of its 6 bytes"},
  });
}

// The words behind the position are nlohmann's, and change.
TEST(SafetensorsHeader, RefusesWhatIsNotJson) {
  const auto expect = [](const std::string& header, const std::string& start) {
    const std::string message = refusal(file_of(header, ""));
    EXPECT_EQ(message.rfind("[safetensors] x: " + start, 0), 0U) << message;
    for (const char c : message) EXPECT_TRUE(c >= ' ' && c <= '~') << message;
    EXPECT_LT(message.size(), 300U);
  };
  const std::string json = "header is not valid JSON in UTF-8 at byte ";
  expect("{a}", json + "2: ");
  expect("{}}", json + "3: ");
  expect("{}{}", json + "3: ");
  expect("{\"a\"}", json + "5: ");
  expect("{,}", json + "2: ");
  expect(braces(entry("a") + ","), json);
  expect("{/**/}", json + "2: ");
  expect(with(R"("shape":[1e999])"), json);
  expect(with(R"("shape":[02])"), json);
  expect(with(R"("shape":[NaN])"), json);
  // Not UTF-8: a stray byte, an overlong form, a surrogate, beyond the last.
  expect("{\"\xff\":{}}", json + "3: ");
  expect("{\"\xc0\x80\":{}}", json + "3: ");
  expect("{\"\xed\xa0\x80\":{}}", json + "4: ");
  expect("{\"\xf4\x90\x80\x80\":{}}", json + "4: ");
  expect(R"({"\ud800":{}})", json);
  expect("{\"\n\":{}}", json + "3: ");
  // A token of any length does not make a message of any length.
  expect("{\"" + std::string(100'000, 'a') + "\xff\":{}}", json);
}

TEST(SafetensorsHeader, RefusesDepthAtOnce) {
  const std::string deep(1'000'000, '[');
  expect_refused({
      {"{\"a\":" + deep + "}", R"(tensor "a" is an array, not an object)"},
      {R"({"__metadata__":{"k":)" + deep + "}}",
       R"(__metadata__ "k" is an array, not a string)"},
  });
}

TEST(SafetensorsHeader, ShortensForeignText) {
  const std::string name = "\\u001b[31m" + std::string(1000, 'a');
  const std::string message = refusal(file_of("{\"" + name + "\":1}", ""));
  EXPECT_EQ(message, "[safetensors] x: tensor \"\\u001b[31m" +
                         std::string(115, 'a') + "...\" is 1, not an object");
}

}  // namespace
}  // namespace polyattn::io::test
