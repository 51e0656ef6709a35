// Structs out of files of MATLAB, and the classes of ImageNet's kit in one.
#include "data/mat_file.h"

#include <gtest/gtest.h>

#include <cmath>

#include "data/label_files.h"
#include "data/made_mat.h"
#include "data/support.h"

namespace polyattn::data::mat_file_test {
namespace {

using namespace data::test;
using Words = std::vector<std::string>;

// The kit numbers its classes out of the order of their names, and has groups
// of them too.
const std::vector<Synset> kSynsets = {
    {2, "n1"}, {1, "n3"}, {4, "n9", 2}, {3, "n2"}};

Words classes_of(std::string_view file) {
  return parse_kit_classes(bytes_of(file), "meta.mat");
}

std::string refusal(std::string_view file) {
  return error_of([&] { classes_of(file); });
}

TEST(MatFile, HasTheClassesInTheOrderOfTheKit) {
  const std::string synsets = mat_synsets(kSynsets);
  EXPECT_EQ(classes_of(mat_file(synsets)), (Words{"n3", "n1", "n2"}));
  EXPECT_EQ(classes_of(mat_file(mat_compressed(synsets))),
            (Words{"n3", "n1", "n2"}));
  // Whatever else is in the file.
  const std::string other =
      mat_array(6, {1, 3}, "other", mat_element(2, "\1\2\3"));
  EXPECT_EQ(classes_of(mat_file(mat_compressed(other) + other + synsets)),
            (Words{"n3", "n1", "n2"}));
}

TEST(MatFile, HoldsNumbersAndTexts) {
  const std::string one =
      mat_array(6, {1, 1}, "", mat_element(3, std::string("\xfe\xff", 2)));
  const std::string file = mat_file(
      mat_struct("s", {"a", "long_name"},
                 {mat_number(-0.5), mat_text("text"), one,
                  mat_array(4, {1, 2}, "", mat_element(16, "\xc3\xa9x"))}));
  const MatStruct found = read_mat_struct(bytes_of(file), "s", "f");
  EXPECT_EQ(found.fields, (Words{"a", "long_name"}));
  ASSERT_EQ(found.elements.size(), 2U);
  EXPECT_EQ(found.elements[0][0].number, -0.5);
  EXPECT_FALSE(found.elements[0][0].text);
  EXPECT_EQ(found.elements[0][1].text, "text");
  EXPECT_EQ(found.elements[1][0].number, -2);
  EXPECT_EQ(found.elements[1][1].text, "?\?x");  // UTF-8, no ASCII
  EXPECT_EQ(found.field("long_name", "f"), 1U);
  EXPECT_EQ(error_of([&] { std::ignore = found.field("b", "f"); }),
            "f: there is no field b");
  EXPECT_EQ(error_of([&] { read_mat_struct(bytes_of(file), "t", "f"); }),
            "f: there is no variable t");
}

TEST(MatFile, OfOtherVersionsAreRefused) {
  std::string file = mat_file(mat_synsets(kSynsets));
  EXPECT_EQ(refusal(file.substr(0, 100)),
            "meta.mat: it is shorter than the header of a file of MATLAB");
  file[126] = 'M';
  file[127] = 'I';
  EXPECT_EQ(refusal(file), "meta.mat: it is big endian, which is not read");
  file[127] = 'x';
  EXPECT_EQ(refusal(file), "meta.mat: this is no file of MATLAB, version 5");
  file = mat_file(mat_synsets(kSynsets));
  file[125] = 2;
  EXPECT_EQ(refusal(file),
            "meta.mat: it is of MATLAB 7.3 (HDF5), only version 5 is read");
  file[125] = 3;
  EXPECT_EQ(refusal(file), "meta.mat: this is no file of MATLAB, version 5");
  EXPECT_EQ(refusal(mat_file("")), "meta.mat: there is no variable synsets");
}

TEST(MatFile, OfOtherContentAreRefused) {
  const auto refused = [](const std::vector<Synset>& synsets) {
    return refusal(mat_file(mat_synsets(synsets)));
  };
  EXPECT_EQ(refused({{1, "n1"}, {1, "n2"}}),
            "meta.mat: two synsets have the number 1");
  EXPECT_EQ(refused({{1, "n1"}, {3, "n2"}}),
            "meta.mat: there is no synset with the number 2");
  EXPECT_EQ(refused({{1, "n1"}, {0, "n2"}}),
            "meta.mat: a synset has the number 0");
  EXPECT_EQ(refused({{1, "../n1"}}), "meta.mat: a WNID is no name");
  EXPECT_EQ(refused({{1, "n1", 3}}), "meta.mat: there is nothing in it");
  const auto with = [](const Words& cells) {
    return refusal(mat_file(mat_struct(
        "synsets", {"ILSVRC2012_ID", "WNID", "num_children"}, cells)));
  };
  EXPECT_EQ(with({mat_number(1), mat_text("n1"), mat_number(0)}), "");
  const std::string lacks =
      "meta.mat: a synset lacks its ILSVRC2012_ID, WNID or num_children";
  EXPECT_EQ(with({mat_text("1"), mat_text("n1"), mat_number(0)}), lacks);
  EXPECT_EQ(with({mat_number(1), mat_number(1), mat_number(0)}), lacks);
  EXPECT_EQ(with({mat_number(1), mat_text("n1"), mat_element(14, "")}), lacks);
  EXPECT_EQ(with({mat_number(std::nan("")), mat_text("n1"), mat_number(0)}),
            "meta.mat: a synset has the number nan");
  EXPECT_EQ(refusal(mat_file(mat_struct("synsets", {"WNID"}, {mat_text("n")}))),
            "meta.mat: there is no field ILSVRC2012_ID");
  EXPECT_EQ(
      refusal(mat_file(mat_array(6, {1, 1}, "synsets", mat_element(2, "\1")))),
      "meta.mat: synsets is no struct");
}

TEST(MatFile, SizesThatCannotBeAreRefused) {
  const auto of_sides = [](std::vector<std::int32_t> sides) {
    std::string names = "WNID";
    names.resize(32, '\0');
    return refusal(mat_file(mat_array(
        2, std::move(sides), "synsets",
        mat_element(5, std::string("\x20\0\0\0", 4)) + mat_element(1, names))));
  };
  EXPECT_EQ(of_sides({1000000, 1}),
            "meta.mat: synsets has 1000000 elements, more than its bytes hold");
  for (const auto& sides :
       {std::vector<std::int32_t>{-1, 1}, {1 << 20, 1 << 20}, {1 << 30, 0}}) {
    EXPECT_EQ(of_sides(sides), "meta.mat: an array is larger than its file");
  }
  EXPECT_EQ(of_sides({1}), "meta.mat: an array has fewer than two dimensions");
}

// Wherever a file ends too early, and whatever byte is not what it was, it is
// either read or refused by name.
TEST(MatFile, DamageIsFound) {
  const std::string plain = mat_file(mat_synsets(kSynsets));
  const std::string packed = mat_file(mat_compressed(mat_synsets(kSynsets)));
  for (const std::string& file : {plain, packed}) {
    // The last bytes of the plain one are what fills it up.
    for (std::size_t size = 0; size + 8 < file.size(); ++size) {
      EXPECT_TRUE(has(refusal(file.substr(0, size)), "meta.mat: ")) << size;
    }
    for (std::size_t at = 128; at < file.size(); ++at) {
      std::string damaged = file;
      damaged[at] = static_cast<char>(damaged[at] ^ 0x81);
      const std::string message = refusal(damaged);
      EXPECT_TRUE(message.empty() || has(message, "meta.mat: ")) << at;
    }
  }
  std::string damaged = packed;
  damaged[150] = static_cast<char>(damaged[150] ^ 0x55);
  EXPECT_TRUE(
      has(refusal(damaged), "meta.mat: the compressed part is damaged"));
}

}  // namespace
}  // namespace polyattn::data::mat_file_test
