// Named tensors in a safetensors file (polyattn/io/safetensors.h).
#pragma once

#include <filesystem>

#include "polyattn/io/safetensors.h"
#include "polyattn/models/weights.h"

namespace polyattn::models {

// Copies of the tensors of the file, on the CPU. Throws io::SafetensorsError;
// also for the types that torch does not have (U16, U32, U64).
NamedTensors load_tensors(const std::filesystem::path& path);

// Whole or not at all, as io::write_safetensors. Tensors may be on any device
// and have any strides. Throws io::SafetensorsError; also for types that the
// format does not have.
void save_tensors(const std::filesystem::path& path,
                  const NamedTensors& tensors,
                  const io::Metadata& metadata = {});

}  // namespace polyattn::models
