// The parser is a handler of JSON events and not a walk over a document,
// because a document has forgotten which keys came twice. It accepts three
// levels and refuses the first event of a fourth, so that nothing grows with
// the depth of the text.
#include "io/safetensors_header.h"

#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "base/message.h"
#include "io/tensor_type.h"

namespace polyattn::io {
namespace {

using Json = nlohmann::json;

constexpr std::uint64_t kMaxNumber = std::numeric_limits<std::int64_t>::max();

// What the next event belongs to.
enum class Place { kStart, kTop, kMetadata, kEntry, kShape, kOffsets };

// The names of the functions, their arguments and results are nlohmann's.
class HeaderReader {
 public:
  explicit HeaderReader(std::string_view source) : source_(source) {}

  Header take() { return std::move(header_); }

  bool null() { unexpected("null"); }
  bool boolean(bool value) { unexpected(value ? "true" : "false"); }
  // Called for what begins with a minus, -0 among it.
  bool number_integer(Json::number_integer_t value) {
    unexpected(value == 0 ? "-0" : std::to_string(value));
  }
  bool number_unsigned(Json::number_unsigned_t value);
  bool number_float(Json::number_float_t /*value*/, const std::string& text) {
    unexpected(base::shortened(text));
  }
  bool string(std::string& value);
  bool binary(Json::binary_t& /*value*/) { unexpected("binary"); }
  bool start_object(std::size_t /*size*/);
  bool key(std::string& value);
  bool end_object();
  bool start_array(std::size_t /*size*/);
  bool end_array();
  bool parse_error(std::size_t position, const std::string& /*token*/,
                   const Json::exception& error);

 private:
  [[noreturn]] void refuse(std::string_view message) const {
    throw SafetensorsError(source_, message);
  }
  // A value that has no business here.
  [[noreturn]] void unexpected(std::string_view value) const;
  std::string here() const;
  std::string_view expected() const;
  void remember_key(std::set<std::string, std::less<>>& keys,
                    std::string_view where) const;

  HeaderEntry& entry() { return header_.entries.back(); }
  // The array that the text is in.
  std::vector<std::int64_t>& numbers() {
    return place_ == Place::kShape ? entry().shape : entry().data_offsets;
  }

  std::string_view source_;
  Header header_;
  Place place_ = Place::kStart;
  std::string key_;    // of the object that the text is in, or of its array
  std::string owner_;  // key of the entry, in the top object
  std::set<std::string, std::less<>> names_, fields_;
};

std::string HeaderReader::here() const {
  switch (place_) {
    case Place::kStart:
      return "header";
    case Place::kTop:
      return base::concat("tensor ", base::in_quotes(key_));
    case Place::kMetadata:
      return base::concat(kMetadataKey, " ", base::in_quotes(key_));
    case Place::kEntry:
      return base::concat("tensor ", base::in_quotes(owner_), ": ", key_);
    case Place::kShape:
    case Place::kOffsets:
      break;
  }
  const HeaderEntry& last = header_.entries.back();
  const auto& array = place_ == Place::kShape ? last.shape : last.data_offsets;
  return base::concat("tensor ", base::in_quotes(owner_), ": ", key_, "[",
                      array.size(), "]");
}

std::string_view HeaderReader::expected() const {
  switch (place_) {
    case Place::kStart:
    case Place::kTop:
      return "an object";
    case Place::kMetadata:
      return "a string";
    case Place::kEntry:
      return key_ == "dtype" ? "a string" : "an array";
    case Place::kShape:
    case Place::kOffsets:
      break;
  }
  return "an integer from 0 to 9223372036854775807";
}

void HeaderReader::unexpected(std::string_view value) const {
  refuse(base::concat(here(), " is ", value, ", not ", expected()));
}

void HeaderReader::remember_key(std::set<std::string, std::less<>>& keys,
                                std::string_view where) const {
  if (!keys.insert(key_).second) {
    refuse(
        base::concat(where, " has the key ", base::in_quotes(key_), " twice"));
  }
}

bool HeaderReader::number_unsigned(Json::number_unsigned_t value) {
  const bool in_array = place_ == Place::kShape || place_ == Place::kOffsets;
  if (!in_array || value > kMaxNumber) unexpected(std::to_string(value));
  if (place_ == Place::kOffsets && numbers().size() == 2) {
    refuse(base::concat("tensor ", base::in_quotes(owner_),
                        ": data_offsets has more than 2 numbers"));
  }
  numbers().push_back(static_cast<std::int64_t>(value));
  return true;
}

bool HeaderReader::string(std::string& value) {
  if (place_ == Place::kMetadata) {
    header_.metadata.emplace(key_, std::move(value));
    return true;
  }
  if (place_ != Place::kEntry || key_ != "dtype")
    unexpected(base::in_quotes(value));
  const auto type = parse_tensor_type(value);
  if (!type) {
    refuse(base::concat(here(), " ", base::in_quotes(value), " is none of ",
                        all_type_names()));
  }
  entry().type = *type;
  return true;
}

bool HeaderReader::start_object(std::size_t /*size*/) {
  if (place_ == Place::kStart) {
    place_ = Place::kTop;
  } else if (place_ != Place::kTop) {
    unexpected("an object");
  } else if (key_ == kMetadataKey) {
    place_ = Place::kMetadata;
  } else {
    place_ = Place::kEntry;
    owner_ = key_;
    fields_.clear();
    header_.entries.push_back({.name = key_});
  }
  return true;
}

bool HeaderReader::key(std::string& value) {
  key_ = std::move(value);
  if (place_ == Place::kTop) {
    remember_key(names_, "header");
  } else if (place_ == Place::kMetadata) {
    if (header_.metadata.contains(key_)) {
      refuse(base::concat(kMetadataKey, " has the key ", base::in_quotes(key_),
                          " twice"));
    }
  } else {
    const std::string where = base::concat("tensor ", base::in_quotes(owner_));
    if (key_ != "dtype" && key_ != "shape" && key_ != "data_offsets") {
      refuse(base::concat(where, " has the unknown key ", base::in_quotes(key_),
                          "; known are dtype, shape, data_offsets"));
    }
    remember_key(fields_, where);
  }
  return true;
}

bool HeaderReader::end_object() {
  if (place_ == Place::kEntry) {
    for (const char* field : {"dtype", "shape", "data_offsets"}) {
      if (fields_.contains(std::string_view(field))) continue;
      refuse(base::concat("tensor ", base::in_quotes(owner_), " lacks the key ",
                          field));
    }
  }
  place_ = Place::kTop;
  return true;
}

bool HeaderReader::start_array(std::size_t /*size*/) {
  if (place_ != Place::kEntry || key_ == "dtype") unexpected("an array");
  place_ = key_ == "shape" ? Place::kShape : Place::kOffsets;
  return true;
}

bool HeaderReader::end_array() {
  const std::size_t size = numbers().size();
  if (place_ == Place::kOffsets && size != 2) {
    refuse(base::concat("tensor ", base::in_quotes(owner_),
                        ": data_offsets has ", size, " numbers, not 2"));
  }
  place_ = Place::kEntry;
  return true;
}

// The message of the exception begins with its number and the position, up to
// the first colon, and ends with a token of the text, of any length.
bool HeaderReader::parse_error(std::size_t position,
                               const std::string& /*token*/,
                               const Json::exception& error) {
  const std::string_view what = error.what();
  const std::size_t colon = what.find(": ");
  const std::string_view reason =
      colon == std::string_view::npos ? what : what.substr(colon + 2);
  refuse(base::concat("header is not valid JSON in UTF-8 at byte ", position,
                      ": ", base::in_quotes(reason)));
}

// The JSON parser takes a zero byte for the end of the text, and white space
// of every kind for padding.
std::string_view without_padding(std::string_view text,
                                 std::string_view source) {
  const std::size_t zero = text.find('\0');
  if (zero != std::string_view::npos) {
    throw SafetensorsError(
        source, base::concat("header has a zero byte, at ", zero, " of its ",
                             text.size(), " bytes"));
  }
  const std::string_view json = text.substr(0, text.find_last_not_of(' ') + 1);
  if (json.empty() || json.front() != '{' || json.back() != '}') {
    throw SafetensorsError(
        source,
        base::concat("header is not an object {...} with spaces behind it: ",
                     base::in_quotes(text)));
  }
  return json;
}

}  // namespace

Header parse_header(std::string_view text, std::string_view source) {
  const std::string_view json = without_padding(text, source);
  HeaderReader reader(source);
  Json::sax_parse(json.begin(), json.end(), &reader);
  return reader.take();
}

}  // namespace polyattn::io
