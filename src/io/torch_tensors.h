// From the objects of a pickle to tensors in the files of its archive.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "io/pickle.h"
#include "io/zip.h"
#include "polyattn/io/torch_file.h"

namespace polyattn::io {

struct TorchTensors {
  std::vector<TorchTensor> tensors;
  std::vector<TorchStorage> storages;
};

// Storages are FOLDERdata/KEY. Throws TorchFileError.
TorchTensors torch_tensors(const PickleObject& root,
                           const std::vector<ZipMember>& members,
                           const std::string& folder, std::string_view source);

}  // namespace polyattn::io
