// Pieces of sentencepiece: learned, there and back, and files that are none.
#include "data/tokenizer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "support/message_of.h"

namespace polyattn::data::tokenizer_test {

using polyattn::test::message_of;
using Algorithm = Tokenizer::Algorithm;

std::string sample() {
  std::string text;
  for (int i = 0; i < 40; ++i)
    text += "the quick brown fox jumps over " + std::to_string(i * 37) +
            " lazy dogs, and the dogs sleep on.\n\n";
  return text;
}

std::string joined(const Tokenizer& tokenizer, const std::string& text) {
  std::string back;
  for (const std::int32_t token : tokenizer.encode(text))
    back += tokenizer.pieces().at(static_cast<std::size_t>(token));
  return back;
}

TEST(Tokenizer, LearnsPiecesThatGiveEveryTextBack) {
  for (const Algorithm algorithm : {Algorithm::kBpe, Algorithm::kUnigram}) {
    const Tokenizer tokenizer = Tokenizer::learn(algorithm, 320, sample());
    EXPECT_EQ(tokenizer.pieces().size(), 320U);
    EXPECT_LT(tokenizer.encode(sample()).size(), sample().size());
    for (const std::string& text :
         {sample(), std::string(), std::string("\n"), std::string("  a  b\n "),
          std::string("\t\x01 caf\xc3\xa9 \xf0\x9f\x98\x80\r\nend"),
          std::string("a\0b", 3)})
      EXPECT_EQ(joined(tokenizer, text), text);
  }
}

// The one mark is what stands for nothing; every byte has a piece.
TEST(Tokenizer, ItsPiecesAreBytesOfTheText) {
  const Tokenizer tokenizer =
      Tokenizer::learn(Algorithm::kUnigram, 320, sample());
  const auto& pieces = tokenizer.pieces();
  EXPECT_EQ(pieces.front(), "");
  EXPECT_EQ(std::count(pieces.begin(), pieces.end(), ""), 1);
  const std::set<std::string> all(pieces.begin(), pieces.end());
  for (int byte = 0; byte < 256; ++byte)
    EXPECT_TRUE(all.contains(std::string(1, static_cast<char>(byte)))) << byte;
  for (const std::string& piece : pieces)
    EXPECT_TRUE(piece == "\n" || piece.find('\n') == std::string::npos);
}

TEST(Tokenizer, TheSameTextMakesTheSameModel) {
  for (const Algorithm algorithm : {Algorithm::kBpe, Algorithm::kUnigram}) {
    const Tokenizer tokenizer = Tokenizer::learn(algorithm, 320, sample());
    EXPECT_EQ(Tokenizer::learn(algorithm, 320, sample()).model(),
              tokenizer.model());
    const Tokenizer again(tokenizer.model(), "copy.model");
    EXPECT_EQ(again.pieces(), tokenizer.pieces());
    EXPECT_EQ(again.encode(sample()), tokenizer.encode(sample()));
  }
}

TEST(Tokenizer, TextThatItWouldChangeIsRefused) {
  const Tokenizer tokenizer = Tokenizer::learn(Algorithm::kBpe, 320, sample());
  for (const char* text : {"the\nfox \xe2\x96\x81", "the\nfox \xff"}) {
    const std::string message =
        message_of<DataError>([&] { tokenizer.encode(text); });
    EXPECT_TRUE(message.starts_with(
        "the tokenizer bpe:320 does not give the text back: it changes byte "
        "8. "))
        << message;
  }
}

TEST(Tokenizer, WhatIsNoModelIsRefused) {
  const auto refusal = [](const std::string& model) {
    return message_of<DataError>([&] { Tokenizer(model, "a.model"); });
  };
  EXPECT_EQ(refusal(""),
            "cannot use a.model as a tokenizer: it has 0 bytes: it must be a "
            "model of sentencepiece");
  const std::string whole =
      Tokenizer::learn(Algorithm::kBpe, 320, sample()).model();
  for (const std::string& model :
       {std::string("the quick brown fox"), whole.substr(0, whole.size() / 2),
        whole.substr(1)})
    EXPECT_TRUE(refusal(model).starts_with("cannot use a.model as a tokenizer"))
        << refusal(model);
}

// Whatever a file holds, it is refused or it encodes.
TEST(Tokenizer, DamagedModelsDoNoHarm) {
  const std::string whole =
      Tokenizer::learn(Algorithm::kUnigram, 320, sample()).model();
  for (std::size_t at = 0; at < whole.size(); at += whole.size() / 60) {
    std::string model = whole;
    model[at] = static_cast<char>(model[at] ^ 0x55);
    try {
      joined(Tokenizer(model, "a.model"), "the fox\n");
    } catch (const DataError&) {
    }
  }
}

TEST(Tokenizer, MorePiecesThanTheTextHasAreRefused) {
  EXPECT_EQ(message_of<DataError>(
                [] { Tokenizer::learn(Algorithm::kUnigram, 60000, sample()); }),
            "cannot learn unigram:60000 from a text of 2808 bytes: Vocabulary "
            "size too high (60000). Please set it to a value <= 336: use "
            "another number of pieces, or more text");
  EXPECT_TRUE(message_of<DataError>([] {
                Tokenizer::learn(Algorithm::kBpe, 300, "");
              }).starts_with("cannot learn bpe:300 from a text of 0 bytes: "));
}

}  // namespace polyattn::data::tokenizer_test
