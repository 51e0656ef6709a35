#include "data/imagenet.h"

#include <gtest/gtest.h>

#include "data/load.h"
#include "data/made_mat.h"
#include "data/support.h"

namespace polyattn::data::imagenet_test {
namespace {

namespace fs = std::filesystem;

using test::error_of;
using test::has;
using test::TemporaryFolder;
using Labels = std::vector<std::int32_t>;
using Words = std::vector<std::string>;

// Three classes, whose order in the development kit is another: n3, n1, n2.
// Nothing of the images is read.
void write_train(const TemporaryFolder& folder, const std::string& base = "") {
  for (const char* name : {"n3/n3_7", "n1/n1_2", "n1/n1_10", "n2/n2_1"}) {
    folder.write(base + "train/" + name + ".JPEG", "");
  }
}

void write_val(const TemporaryFolder& folder, const std::string& base = "") {
  for (const char* number : {"1", "2", "3", "4"}) {
    folder.write(
        base + "val/ILSVRC2012_val_0000000" + std::string(number) + ".JPEG",
        "");
  }
}

ImageFileSplits list(const TemporaryFolder& folder) {
  return list_images({.name = "imagenet", .path = folder.path()});
}

std::string refusal(const TemporaryFolder& folder) {
  return error_of([&] { list(folder); });
}

TEST(ImageNet, InFoldersOfClassesIsSortedByNames) {
  const TemporaryFolder folder;
  write_train(folder);
  folder.write("val/n2/b.JPEG", "");
  folder.write("val/n1/a.JPEG", "");
  const ImageFileSplits splits = list(folder);
  EXPECT_EQ(splits.class_names, (Words{"n1", "n2", "n3"}));
  EXPECT_EQ(splits.train.labels, (Labels{0, 0, 1, 2}));
  EXPECT_EQ(splits.train.path(0), (folder / "train/n1/n1_10.JPEG").string());
  EXPECT_EQ(splits.train.path(3), (folder / "train/n3/n3_7.JPEG").string());
  EXPECT_EQ(splits.test.labels, (Labels{0, 1}));
  EXPECT_EQ(splits.test.path(1), (folder / "val/n2/b.JPEG").string());
}

// The same labels from each of the files that people have.
TEST(ImageNet, FlatTakesItsLabelsFromAList) {
  const std::string truth = "ILSVRC2012_validation_ground_truth.txt";
  struct Case {
    std::string base;
    std::vector<std::pair<std::string, std::string>> files;
  };
  const std::string solution =
      "ImageId,PredictionString\nILSVRC2012_val_00000004,n2 1 2 3 4 \n"
      "ILSVRC2012_val_00000001,n3 1 2 3 4 n3 1 2 3 4 \n"
      "ILSVRC2012_val_00000002,n1 1 2 3 4 \n"
      "ILSVRC2012_val_00000003,n3 1 2 3 4 \n";
  const std::vector<Case> cases = {
      {"", {{"LOC_val_solution.csv", solution}}},
      {"ILSVRC/Data/CLS-LOC/", {{"LOC_val_solution.csv", solution}}},
      {"",
       {{"imagenet_2012_validation_synset_labels.txt", "n3\nn1\nn3\nn2\n"}}},
      {"", {{truth, "1\n2\n1\n3\n"}, {"synsets.txt", "n3 a\nn1 b\nn2 c\n"}}},
      {"",
       {{"ILSVRC2012_devkit_t12/data/" + truth, "1\n2\n1\n3\n"},
        {"ILSVRC2012_devkit_t12/data/synsets.txt", "n3\nn1\nn2\n"}}},
      {"",
       {{"ILSVRC2012_devkit_t12/data/" + truth, "1\n2\n1\n3\n"},
        {"ILSVRC2012_devkit_t12/data/meta.mat",
         test::mat_file(test::mat_compressed(test::mat_synsets(
             {{2, "n1"}, {3, "n2"}, {4, "n", 3}, {1, "n3"}})))}}}};
  for (const Case& one : cases) {
    const TemporaryFolder folder;
    write_train(folder, one.base);
    write_val(folder, one.base);
    for (const auto& [name, text] : one.files) folder.write(name, text);
    const ImageFileSplits splits = list(folder);
    EXPECT_EQ(splits.test.labels, (Labels{2, 0, 2, 1})) << one.files[0].first;
    EXPECT_EQ(
        splits.test.path(3),
        (folder / (one.base + "val/ILSVRC2012_val_00000004.JPEG")).string());
  }
}

TEST(ImageNet, FlatWithoutLabelsSaysWhatItNeeds) {
  const TemporaryFolder folder;
  write_train(folder);
  write_val(folder);
  EXPECT_TRUE(has(refusal(folder), "neither LOC_val_solution.csv nor"));
  folder.write("ILSVRC2012_validation_ground_truth.txt", "1\n2\n1\n3\n");
  EXPECT_TRUE(has(refusal(folder), "needs meta.mat of the development kit"));
  folder.write("meta.mat", "n3");
  EXPECT_TRUE(has(refusal(folder), "meta.mat: it is shorter than the header"));
  folder.write("synsets.txt", "n1\nn2\nn3\n");
  EXPECT_TRUE(
      has(refusal(folder), "in the order of their names, which is not"));
  folder.write("synsets.txt", "n3\nn1\nn4\n");
  EXPECT_TRUE(has(refusal(folder), "synsets.txt: there is no class n4"));
  folder.write("synsets.txt", "n3\nn1\nn2\n");
  folder.write("ILSVRC2012_validation_ground_truth.txt", "1\n2\n1\n4\n");
  EXPECT_TRUE(has(refusal(folder), "line 4: a number from 1 to 3"));
  folder.write("ILSVRC2012_validation_ground_truth.txt", "1\n2\n1\n");
  EXPECT_TRUE(has(refusal(folder), "there are 4 images, but"));
  folder.write("ILSVRC2012_validation_ground_truth.txt", "1\n2\n1\n3\n");
  fs::rename(folder / "val/ILSVRC2012_val_00000002.JPEG",
             folder / "val/ILSVRC2012_val_00000005.JPEG");
  EXPECT_TRUE(has(refusal(folder), "3.JPEG: its number must be 2"));
}

TEST(ImageNet, ListsMustNameTheImages) {
  const TemporaryFolder folder;
  write_train(folder);
  folder.write("val/a.JPEG", "");
  folder.write("val/b.JPEG", "");
  const auto with = [&](const std::string& lines) {
    folder.write("LOC_val_solution.csv", "ImageId,PredictionString\n" + lines);
    return refusal(folder);
  };
  EXPECT_TRUE(has(with("a,n1 1\n"), "b.JPEG: its class is not in"));
  EXPECT_TRUE(has(with("a,n1 1\nb,n9 1\n"), "there is no class n9"));
  EXPECT_TRUE(has(with("a,n1 1\na,n1 1\n"), "a is there a second time"));
  EXPECT_TRUE(has(with("a,n1 1\nb,n1 1\nc,n1 1\n"), "the classes of 3"));
  EXPECT_EQ(with("a,n1 1\nb,n3 1\n"), "");
}

TEST(ImageNet, MustBeThere) {
  const TemporaryFolder folder;
  EXPECT_TRUE(
      has(refusal(folder), "this is not ImageNet: there are no folders"));
  EXPECT_TRUE(has(error_of([] { list_images({.name = "imagenet"}); }),
                  "'imagenet' needs a path"));
  EXPECT_TRUE(has(error_of([&] {
                    list_images(
                        {.name = "imagenet", .path = folder / "absent"});
                  }),
                  "there is no such folder"));
  write_train(folder);
  fs::create_directory(folder / "val");
  folder.write("LOC_val_solution.csv", "ImageId,P\na,n1 1\n");
  EXPECT_TRUE(has(refusal(folder), "val: there are no images"));
  folder.write("val/n9/a.JPEG", "");
  EXPECT_TRUE(has(refusal(folder), "val/n9: there is no class of this name"));
}

ImageFileSplits list_tiny(const TemporaryFolder& folder) {
  return list_images({.name = "tiny-imagenet", .path = folder.path()});
}

TEST(TinyImageNet, HasItsAnnotationsOrFolders) {
  const TemporaryFolder folder;
  folder.write("wnids.txt", "n2\nn1\n");
  folder.write("train/n2/images/n2_0.JPEG", "");
  folder.write("train/n2/n2_boxes.txt", "n2_0.JPEG\t0\t0\t62\t63\n");
  folder.write("train/n1/images/n1_0.JPEG", "");
  folder.write("val/images/val_0.JPEG", "");
  folder.write("val/images/val_1.JPEG", "");
  folder.write("val/val_annotations.txt",
               "val_0.JPEG\tn2\t0\t32\t44\t62\nval_1.JPEG\tn1\t1\t2\t3\t4\n");
  folder.write("test/images/test_0.JPEG", "");
  const ImageFileSplits splits = list_tiny(folder);
  EXPECT_EQ(splits.class_names, (Words{"n1", "n2"}));
  EXPECT_EQ(splits.train.labels, (Labels{0, 1}));
  EXPECT_EQ(splits.train.path(0),
            (folder / "train/n1/images/n1_0.JPEG").string());
  EXPECT_EQ(splits.test.labels, (Labels{1, 0}));
  EXPECT_EQ(splits.test.path(0), (folder / "val/images/val_0.JPEG").string());

  folder.write("wnids.txt", "n2\nn1\nn3\n");
  EXPECT_TRUE(has(error_of([&] { list_tiny(folder); }),
                  "its 3 classes are not the 2 of train/"));
  fs::remove(folder / "wnids.txt");
  fs::remove_all(folder / "val");
  folder.write("val/n1/images/val_1.JPEG", "");
  EXPECT_EQ(list_tiny(folder).test.labels, (Labels{0}));
}

TEST(TinyImageNet, AnnotationsMustFit) {
  const TemporaryFolder folder;
  folder.write("train/n1/images/n1_0.JPEG", "");
  folder.write("val/images/val_0.JPEG", "");
  folder.write("val/val_annotations.txt", "val_0.JPEG\tn2\t0\t32\t44\t62\n");
  EXPECT_TRUE(has(error_of([&] { list_tiny(folder); }), "no class n2"));
  folder.write("val/val_annotations.txt", "val_7.JPEG\tn1\t0\t32\t44\t62\n");
  EXPECT_TRUE(has(error_of([&] { list_tiny(folder); }),
                  "val_0.JPEG: its class is not in"));
}

TEST(ListImages, TakesFoldersOfOnesOwn) {
  const TemporaryFolder folder;
  write_train(folder);
  folder.write("test/n3/x.png", "");
  const ImageFileSplits splits =
      list_images({.name = "images", .path = folder.path()});
  EXPECT_EQ(splits.train.count(), 4U);
  EXPECT_EQ(splits.test.labels, (Labels{2}));
  EXPECT_TRUE(has(error_of([&] {
                    list_images({.name = "cifar10", .path = folder.path()});
                  }),
                  "'cifar10' is no data set of image files"));
  EXPECT_TRUE(has(error_of([&] {
                    list_images({.name = "images", .path = folder / "test"});
                  }),
                  "there is no folder train in it"));
}

}  // namespace
}  // namespace polyattn::data::imagenet_test
