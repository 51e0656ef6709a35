#include "report/series.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "base/json_text.h"
#include "base/message.h"
#include "report/text.h"

namespace polyattn::report {
namespace {

using base::Json;
using base::JsonError;

constexpr std::size_t kCapacity = 2 * kMaxPoints;
constexpr std::size_t kMaxNormsWidth = 1 << 14;
constexpr std::size_t kMaxKind = 32;
constexpr std::uint64_t kMaxStage = 1000;
// Numbers in the table of the norms, of any width: one megabyte.
constexpr std::size_t kMaxNormsNumbers = 1 << 17;

// By head, in the order of the columns.
constexpr std::array<const char*, NormsLayout::kHeadNumbers> kHeadKeys = {
    "weight_mean", "weight_max", "jacobian_mean", "jacobian_max",
    "max_abs_score"};
// Those of them whose largest value decides what is kept.
constexpr std::array<std::size_t, 3> kDecidingHeadKeys = {1, 3, 4};
constexpr std::array<const char*, NormsLayout::kLayerNumbers> kLayerKeys = {
    "grad_norm", "weight_norm"};
// Of the start, by head.
constexpr std::array<const char*, 4> kStartKeys = {"gain", "weight_before",
                                                   "weight", "softmax"};

const Json& part_of(const Json& record, const char* key) {
  const auto found = record.find(key);
  if (found == record.end()) {
    throw JsonError(fmt::format("\"{}\" is missing", key));
  }
  return *found;
}

double number_at(const Json& record, const char* key) {
  return base::number_of(part_of(record, key));
}

// 0 where there is none.
double counted_number(const Json& record, const char* key, std::size_t& count) {
  if (!record.contains(key)) return 0;
  const double value = number_at(record, key);
  ++count;
  return value;
}

bool is_plain_name(const std::string& name) {
  constexpr std::size_t kMaxName = 40;
  return !name.empty() && name.size() <= kMaxName &&
         std::all_of(name.begin(), name.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                  (c >= '0' && c <= '9') || c == '_' || c == '-';
         });
}

// Of an evaluation; none if its loss has no parts.
std::vector<std::string> term_names(const Json& record) {
  std::vector<std::string> names;
  const auto found = record.find("terms");
  if (found == record.end()) return names;
  if (!found->is_object() || found->size() > kMaxTerms) {
    throw JsonError(
        fmt::format("\"terms\" is no object of up to {} numbers", kMaxTerms));
  }
  for (const auto& [name, value] : found->items()) {
    if (!is_plain_name(name)) {
      throw JsonError(
          "a term has a name of other than letters, digits, _ "
          "and -");
    }
    names.push_back(name);
  }
  return names;
}

const Json& list_at(const Json& record, const char* key) {
  const Json& list = part_of(record, key);
  if (!list.is_array()) {
    throw JsonError(fmt::format("\"{}\" is no list", key));
  }
  return list;
}

void check_length(const Json& list, std::size_t length, const char* key) {
  if (list.is_array() && list.size() == length) return;
  throw JsonError(fmt::format("\"{}\" has another shape", key));
}

// NaN is worse than anything.
double worse(double a, double b) { return std::isnan(a) || a > b ? a : b; }

// That of the lists by layer and head under this key.
NormsLayout layout_of(const Json& record, const char* key) {
  const Json& layers = list_at(record, key);
  std::vector<std::size_t> heads;
  std::size_t width = NormsLayout::kFirstLayer;
  for (const Json& layer : layers) {
    if (!layer.is_array()) throw JsonError("a layer is no list of heads");
    heads.push_back(layer.size());
    width +=
        NormsLayout::kLayerNumbers + heads.back() * NormsLayout::kHeadNumbers;
    if (width > kMaxNormsWidth) {
      throw JsonError(fmt::format("it has more than {} norms", kMaxNormsWidth));
    }
  }
  return NormsLayout(std::move(heads));
}

void read_heads(const Json& record, const NormsLayout& layout, std::size_t key,
                std::vector<double>& row) {
  const Json& layers = list_at(record, kHeadKeys[key]);
  check_length(layers, layout.layers(), kHeadKeys[key]);
  for (std::size_t i = 0; i < layout.layers(); ++i) {
    check_length(layers[i], layout.heads(i), kHeadKeys[key]);
    for (std::size_t j = 0; j < layout.heads(i); ++j) {
      row[layout.head_column(i, j) + key] = base::number_of(layers[i][j]);
    }
  }
}

std::string heads_text(const Json& record, const NormsLayout& layout,
                       const char* key) {
  const Json& layers = list_at(record, key);
  check_length(layers, layout.layers(), key);
  std::string text = "[";
  for (std::size_t i = 0; i < layout.layers(); ++i) {
    check_length(layers[i], layout.heads(i), key);
    text += i == 0 ? "[" : ",[";
    for (std::size_t j = 0; j < layout.heads(i); ++j) {
      if (j > 0) text += ',';
      append_number(text, base::number_of(layers[i][j]));
    }
    text += ']';
  }
  return text + "]";
}

// Lists by layer that only models of many kinds have.
std::vector<LayerFacts> facts_of(const Json& record, std::size_t layers) {
  std::vector<LayerFacts> facts(layers);
  const auto each = [&](const char* key, const auto& take) {
    if (!record.contains(key)) return;
    const Json& list = list_at(record, key);
    check_length(list, layers, key);
    for (std::size_t i = 0; i < layers; ++i) take(facts[i], list[i]);
  };
  each("layer_kind", [](LayerFacts& layer, const Json& kind) {
    if (!kind.is_string()) throw JsonError("a layer's kind is no string");
    layer.kind = cut_text(kind.get<std::string>(), kMaxKind);
  });
  each("layer_stage", [](LayerFacts& layer, const Json& stage) {
    if (!stage.is_number_unsigned() || stage.get<std::uint64_t>() > kMaxStage) {
      throw JsonError("a layer's stage is no small count");
    }
    layer.stage = stage.get<std::int64_t>();
  });
  each("layer_tokens", [](LayerFacts& layer, const Json& tokens) {
    layer.tokens = base::number_of(tokens);
    if (!(layer.tokens > 0) || !std::isfinite(layer.tokens)) {
      throw JsonError("a layer has no number of tokens");
    }
  });
  return facts;
}

void put_largest(const NormsLayout& layout, std::vector<double>& row) {
  for (std::size_t i = 0; i < layout.layers(); ++i) {
    const double gradient = row[layout.layer_column(i)];
    row.back() = worse(gradient, row.back());
    for (std::size_t j = 0; j < layout.heads(i); ++j) {
      for (std::size_t k = 0; k < kDecidingHeadKeys.size(); ++k) {
        const std::size_t column =
            layout.head_column(i, j) + kDecidingHeadKeys[k];
        row[k] = worse(row[column], row[k]);
      }
    }
  }
}

}  // namespace

NormsLayout::NormsLayout(std::vector<std::size_t> heads)
    : heads_(std::move(heads)) {
  for (const std::size_t count : heads_) {
    starts_.push_back(width_);
    width_ += kLayerNumbers + count * kHeadNumbers;
  }
}

RunSeries::RunSeries()
    : train_(
          kTrainWidth,
          {kTrainLoss, kTrainGradNorm, kTrainItems, kTrainRate, kTrainSeconds},
          kCapacity),
      eval_(kEvalWidth, {kEvalLoss, kEvalAccuracy, kEvalBits}, kCapacity) {}

void RunSeries::add(std::string_view line) {
  const Json record = base::parse_json(line);
  if (!record.is_object()) throw JsonError("it is no JSON object");
  const Json& kind = part_of(record, "kind");
  const Json& number = part_of(record, "step");
  constexpr std::uint64_t kMaxStep = std::uint64_t{1} << 53;
  if (!number.is_number_unsigned() || number.get<std::uint64_t>() > kMaxStep) {
    throw JsonError("\"step\" is no count");
  }
  const auto step = number.get<std::int64_t>();
  if (kind == "train") {
    add_train(step, record);
  } else if (kind == "eval") {
    add_eval(step, record);
  } else if (kind == "norms") {
    add_norms(step, record);
  } else if (kind == "start") {
    add_start(step, record);
  } else if (!kind.is_string()) {
    throw JsonError("\"kind\" is no string");
  }
  last_step_ = std::max(last_step_, step);
}

void RunSeries::add_train(std::int64_t step, const Json& record) {
  std::array<double, kTrainWidth> row{};
  row[kTrainLoss] = number_at(record, "loss");
  row[kTrainGradNorm] = number_at(record, "grad_norm");
  row[kTrainRate] = number_at(record, "lr");
  row[kTrainItems] = number_at(record, "items_per_second");
  row[kTrainSeconds] = number_at(record, "seconds");
  if (!train_.add(step, row)) throw JsonError("its step is not a new one");
}

void RunSeries::add_eval(std::int64_t step, const Json& record) {
  std::array<double, kEvalWidth> row{};
  std::size_t accuracies = accuracies_, bits = bits_;
  std::size_t relative_l1 = relative_l1_, relative_l2 = relative_l2_;
  row[kEvalLoss] = number_at(record, "loss");
  row[kEvalAccuracy] = counted_number(record, "accuracy", accuracies);
  row[kEvalBits] = counted_number(record, "bits_per_byte", bits);
  row[kEvalRelativeL1] = counted_number(record, "relative_l1", relative_l1);
  row[kEvalRelativeL2] = counted_number(record, "relative_l2", relative_l2);
  std::vector<std::string> terms = term_names(record);
  if (eval_.total() > 0 && terms != terms_) {
    throw JsonError("its terms are not those before it");
  }
  for (std::size_t i = 0; i < terms.size(); ++i) {
    row[kEvalTerms + i] = number_at(record["terms"], terms[i].c_str());
  }
  if (!eval_.add(step, row)) throw JsonError("its step is not a new one");
  accuracies_ = accuracies;
  bits_ = bits;
  relative_l1_ = relative_l1;
  relative_l2_ = relative_l2;
  terms_ = std::move(terms);
}

void RunSeries::add_norms(std::int64_t step, const Json& record) {
  NormsLayout layout = layout_of(record, kHeadKeys[0]);
  if (norms_ && !(norms_->layout == layout)) {
    throw JsonError("it has other layers or heads than those before it");
  }
  // One more, at the end: the largest gradient, before it has its place.
  std::vector<double> row(layout.width() + 1, 0.0);
  row[NormsLayout::kTokens] = number_at(record, "tokens");
  for (std::size_t k = 0; k < kLayerKeys.size(); ++k) {
    const Json& list = list_at(record, kLayerKeys[k]);
    check_length(list, layout.layers(), kLayerKeys[k]);
    for (std::size_t i = 0; i < layout.layers(); ++i) {
      row[layout.layer_column(i) + k] = base::number_of(list[i]);
    }
  }
  for (std::size_t k = 0; k < kHeadKeys.size(); ++k) {
    read_heads(record, layout, k, row);
  }
  put_largest(layout, row);
  row[kDecidingHeadKeys.size()] = row.back();
  row.pop_back();
  if (!norms_) {
    const std::size_t capacity =
        std::clamp<std::size_t>(kMaxNormsNumbers / row.size(), 8, kCapacity);
    norms_.emplace(
        NormsTable{layout, facts_of(record, layout.layers()),
                   ThinTable(layout.width(), {0, 1, 2, 3}, capacity)});
  }
  if (!norms_->table.add(step, row)) {
    throw JsonError("its step is not a new one");
  }
}

// It is small and there is one: what is shown of it is made at once.
void RunSeries::add_start(std::int64_t step, const Json& record) {
  if (step != 0) throw JsonError("a start that is not at step 0");
  if (!start_.empty()) throw JsonError("a second start");
  const NormsLayout layout = layout_of(record, kStartKeys[0]);
  std::string text = "{\"factor\":";
  append_number(text, number_at(record, "factor"));
  for (const char* key : kStartKeys) {
    text += fmt::format(",\"{}\":{}", key, heads_text(record, layout, key));
  }
  start_ = text + "}";
}

}  // namespace polyattn::report
