// Named tensors in a file: safetensors (polyattn/io/safetensors.h), or what
// torch.save has written (polyattn/io/torch_file.h).
#pragma once

#include <filesystem>

#include "polyattn/io/safetensors.h"
#include "polyattn/models/weights.h"

namespace polyattn::models {

// Copies of the tensors of the file, on the CPU. Which of the two formats it is
// shows in its first bytes, or else in its name; of a file of torch.save,
// tensors that shared their memory do so again. Throws io::SafetensorsError,
// also for the types that torch does not have (U16, U32, U64), or
// io::TorchFileError.
NamedTensors load_tensors(const std::filesystem::path& path);

// Whole or not at all, as io::write_safetensors. Tensors may be on any device
// and have any strides. Throws io::SafetensorsError; also for types that the
// format does not have.
void save_tensors(const std::filesystem::path& path,
                  const NamedTensors& tensors,
                  const io::Metadata& metadata = {});

}  // namespace polyattn::models
