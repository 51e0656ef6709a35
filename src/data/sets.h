// What a data set is once it has been read: bytes and labels in memory, no
// torch, no files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace polyattn::data {

// A file of a data set is missing, damaged or not what it should be. what()
// names the file and says what to do.
class DataError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Images of one size, and their classes.
struct ImageSet {
  std::int64_t channels = 0;
  std::int64_t height = 0;
  std::int64_t width = 0;
  std::vector<std::uint8_t> pixels = {};  // [count, channels, height, width]
  std::vector<std::int32_t> labels = {};  // [count], each in [0, classes)

  std::size_t count() const { return labels.size(); }
};

struct ImageSplits {
  ImageSet train;
  ImageSet test;
  std::vector<std::string> class_names;  // as many as there are classes
  ImageSet validation = {};              // data/hold_out.h
};

// Files of images and their classes, of a set that is too large to be in memory
// as pixels.
struct ImageFileSet {
  std::string folder = {};                // in which they are, with its '/'
  std::string names = {};                 // one after the other
  std::vector<std::int64_t> begin = {0};  // [count + 1], offsets into names
  std::vector<std::int32_t> labels = {};  // [count]

  std::size_t count() const { return labels.size(); }
  // Below the folder.
  std::string_view name(std::size_t i) const {
    const std::string_view all = names;
    return all.substr(static_cast<std::size_t>(begin[i]),
                      static_cast<std::size_t>(begin[i + 1] - begin[i]));
  }
  std::string path(std::size_t i) const {
    std::string whole = folder;
    return whole += name(i);
  }
  void add(std::string_view name_below, std::int32_t label) {
    names += name_below;
    begin.push_back(static_cast<std::int64_t>(names.size()));
    labels.push_back(label);
  }
};

struct ImageFileSplits {
  ImageFileSet train;
  ImageFileSet test;
  std::vector<std::string> class_names;
  ImageFileSet validation = {};
};

// A text in tokens of more than a byte (data/tokenizer.h).
struct TextTokens {
  std::vector<std::int32_t> train = {};
  std::vector<std::int32_t> test = {};
  std::vector<std::int32_t> validation = {};
  std::vector<std::string> pieces = {};  // the bytes of each token
  std::string model = {};                // the file of the tokenizer
};

// One text of bytes, for language models.
struct TextSplits {
  std::string train;
  std::string test;
  std::string validation = {};
  std::shared_ptr<const TextTokens> tokens = {};  // none: bytes are
};

// Sequences of tokens of different lengths, and their classes; or pairs of
// sequences, one directly after the other, and the classes of the pairs.
struct SequenceSet {
  std::vector<std::uint8_t> tokens;  // one sequence after the other
  // [towers * count + 1], offsets into tokens.
  std::vector<std::int64_t> begin = {0};
  std::vector<std::int32_t> labels;  // [count]
  std::int64_t towers = 1;           // sequences of an example: 1 or 2

  std::size_t count() const { return labels.size(); }
};

struct SequenceSplits {
  SequenceSet train;
  SequenceSet test;
  std::int64_t vocabulary = 0;  // tokens are in [0, vocabulary); 0 is padding
  std::vector<std::string> class_names;
  SequenceSet validation = {};
};

// Sequences of one length of which some tokens are asked for (data/probes.h).
struct ProbeSet {
  std::int64_t length = 0;
  std::vector<std::uint8_t> tokens = {};   // [count, length]
  std::vector<std::uint8_t> answers = {};  // what follows each; 0: not asked

  std::size_t count() const {
    return length == 0 ? 0 : tokens.size() / static_cast<std::size_t>(length);
  }
};

struct ProbeSplits {
  ProbeSet train;
  ProbeSet test;
  std::int64_t vocabulary = 0;  // tokens are in [1, vocabulary)
  ProbeSet validation = {};
};

}  // namespace polyattn::data
