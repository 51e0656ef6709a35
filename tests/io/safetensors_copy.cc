// safetensors_copy from to: reads a file and writes it again, for the test in
// Python. The message of an error goes to standard error.
#include <cstdio>

#include "polyattn/io/safetensors.h"

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: safetensors_copy from to\n");
    return 2;
  }
  try {
    const polyattn::io::SafetensorsFile file(argv[1]);
    polyattn::io::write_safetensors(argv[2], file.tensors(), file.metadata());
  } catch (const polyattn::io::SafetensorsError& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
