// What a file is, and the way from its archive to its pickle to its tensors.
#include "polyattn/io/torch_file.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <utility>

#include "base/mapped_file.h"
#include "base/message.h"
#include "io/pickle.h"
#include "io/torch_tensors.h"
#include "io/zip.h"

namespace polyattn::io {
namespace {

constexpr std::string_view kZipMagic = "PK\x03\x04";
// How torch.save began before 1.6: a pickle of the number
// 0x1950a86a20f9469cfc6c.
constexpr std::string_view kOldMagic =
    "\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19";

bool starts_with(std::span<const std::byte> file, std::string_view magic) {
  return file.size() >= magic.size() &&
         std::equal(magic.begin(), magic.end(), file.begin(),
                    [](char a, std::byte b) {
                      return static_cast<std::byte>(a) == b;
                    });
}

// FOLDER/data.pkl, where the folder is called as whoever wrote the file likes.
const ZipMember& find_pickle(const std::vector<ZipMember>& members,
                             std::string_view source) {
  constexpr std::string_view kName = "/data.pkl";
  const ZipMember* found = nullptr;
  for (const ZipMember& member : members) {
    if (member.name.ends_with("/constants.pkl")) {
      throw TorchFileError(source,
                           "it is a program of TorchScript: save the "
                           "state_dict of its module instead");
    }
    if (member.name.find('/') + kName.size() != member.name.size() ||
        !member.name.ends_with(kName)) {
      continue;
    }
    if (found != nullptr) {
      throw TorchFileError(source, "it has two pickles, data.pkl");
    }
    found = &member;
  }
  if (found == nullptr) {
    throw TorchFileError(source,
                         "it is a zip archive without a data.pkl: torch.save "
                         "did not write it");
  }
  return *found;
}

}  // namespace

TorchFileError::TorchFileError(std::string_view source,
                               std::string_view message)
    : std::runtime_error(base::concat("[torch_file] ", source, ": ", message)) {
}

bool is_torch_file(const std::filesystem::path& path) {
  const std::string extension = path.extension().string();
  if (extension == ".safetensors") return false;
  std::array<char, 16> start{};
  std::ifstream(path, std::ios::binary).read(start.data(), start.size());
  const std::string_view text(start.data(), start.size());
  if (text.starts_with(kZipMagic) || text.starts_with(kOldMagic)) return true;
  if (text[8] == '{') return false;  // the header of safetensors
  return extension == ".pth" || extension == ".pt" || extension == ".bin";
}

TorchFile::TorchFile() = default;
TorchFile::TorchFile(TorchFile&& other) noexcept = default;
TorchFile& TorchFile::operator=(TorchFile&& other) noexcept = default;
TorchFile::~TorchFile() = default;

TorchFile::TorchFile(const std::filesystem::path& path) {
  try {
    mapping_ = std::make_unique<const base::MappedFile>(path);
  } catch (const std::runtime_error& error) {
    throw TorchFileError(path.string(),
                         base::concat("cannot read: ", error.what()));
  }
  read(mapping_->bytes(), path.string());
}

TorchFile TorchFile::parse(std::span<const std::byte> file,
                           std::string_view source) {
  TorchFile result;
  result.read(file, source);
  return result;
}

void TorchFile::read(std::span<const std::byte> file, std::string_view source) {
  if (starts_with(file, kOldMagic)) {
    throw TorchFileError(
        source,
        "it has the format of torch before 1.6. Load it with Python and save "
        "it again: torch.save(torch.load(old, map_location=\"cpu\"), new)");
  }
  if (!starts_with(file, kZipMagic)) {
    throw TorchFileError(source, "it is no file of torch.save");
  }
  const std::vector<ZipMember> members = zip_members(file, source);
  const ZipMember& pickled = find_pickle(members, source);
  const std::string folder =
      pickled.name.substr(0, pickled.name.rfind('/') + 1);
  for (const ZipMember& member : members) {
    if (member.compressed) {
      throw TorchFileError(
          source, base::concat("its member ", base::in_quotes(member.name),
                               " is compressed, which torch.save never does"));
    }
    if (member.name == folder + "byteorder" &&
        !(member.bytes.size() == 6 && starts_with(member.bytes, "little"))) {
      throw TorchFileError(source, "its numbers are not little-endian");
    }
  }
  const Pickle pickle(pickled.bytes, source);
  TorchTensors found = torch_tensors(pickle.root(), members, folder, source);
  tensors_ = std::move(found.tensors);
  storages_ = std::move(found.storages);
}

}  // namespace polyattn::io
