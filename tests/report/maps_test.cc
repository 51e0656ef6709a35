// Maps that are right, and everything that can be wrong with them.
#include "report/maps.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "support.h"

namespace polyattn::report {
namespace maps_test {

using base::Json;
using test::message_of;
using test::small_maps;

std::string flaw_of(const Json& json) {
  return message_of<base::JsonError>([&] { parse_maps(json.dump()); });
}

std::string flaw_after(const std::function<void(Json&)>& change) {
  Json json = small_maps(2, 2);
  change(json);
  return flaw_of(json);
}

TEST(Maps, TakesOverWhatIsKnown) {
  Json json = small_maps(2, 3);
  json["unknown"] = "x";
  json["inputs"][0]["unknown"] = "x";
  json["maps"][0]["unknown"] = "x";
  const Maps maps = parse_maps(json.dump());
  EXPECT_EQ(maps.inputs(), 2U);
  EXPECT_EQ(base::parse_json(maps.text(2)), small_maps(2, 3));
}

TEST(Maps, ShowsFewerInputs) {
  const Maps maps = parse_maps(small_maps(3, 2).dump());
  EXPECT_EQ(base::parse_json(maps.text(1)), small_maps(1, 2));
  EXPECT_EQ(maps.inputs_within(0), 1U);
  EXPECT_EQ(maps.inputs_within(1'000'000), 3U);
  for (std::size_t inputs = 1; inputs <= 3; ++inputs) {
    EXPECT_GE(maps.bytes(inputs), maps.text(inputs).size());
    EXPECT_EQ(maps.inputs_within(maps.bytes(inputs)), inputs);
  }
}

TEST(Maps, TakesTexts) {
  Json json = small_maps();
  json["inputs"][0] = {{"label", ""},
                       {"kind", "text"},
                       {"tokens", {"T", "</script>", "\x01", "é"}}};
  EXPECT_EQ(base::parse_json(parse_maps(json.dump()).text(1)), json);
  json["inputs"][0]["tokens"].erase(3);
  EXPECT_EQ(flaw_of(json), "an input has 3 tokens, the maps have 4");
  // Row and column 0 are the class token then.
  json["class_token"] = true;
  EXPECT_EQ(flaw_of(json), "");
}

TEST(Maps, MoreThanTheClassTokenMayComeBeforeTheTokens) {
  Json json = small_maps();
  json["inputs"][0] = {{"label", ""}, {"kind", "text"}, {"tokens", {"a", "b"}}};
  json["prefix"] = 2;
  EXPECT_EQ(flaw_of(json), "\"prefix\" is 2, but there is no class token");
  json["class_token"] = true;
  EXPECT_EQ(base::parse_json(parse_maps(json.dump()).text(1)).at("prefix"), 2);
  json["prefix"] = 3;
  EXPECT_EQ(flaw_of(json), "an input has 2 tokens, the maps have 1");
  for (const Json& wrong : {Json(1), Json(-1), Json("2"), Json(1.5)}) {
    json["prefix"] = wrong;
    EXPECT_NE(flaw_of(json), "") << wrong;
  }
}

TEST(Maps, RefusesWhatDoesNotAgree) {
  EXPECT_EQ(flaw_after([](Json&) {}), "");
  EXPECT_EQ(flaw_after([](Json& j) { j["rows"] = 5; }),
            "\"values\" has 24 characters, 20 bytes of base64 have 28");
  EXPECT_EQ(flaw_after([](Json& j) { j["columns"] = 3; }),
            "an input has 4 tokens, the maps have 3");
  EXPECT_EQ(flaw_after([](Json& j) { j["inputs"][1]["image"]["width"] = 3; }),
            "an input has 6 tokens, the maps have 4");
  EXPECT_EQ(flaw_after([](Json& j) { j["inputs"][0]["image"]["patch"] = 2; }),
            "an input has 1 tokens, the maps have 4");
  EXPECT_EQ(
      flaw_after([](Json& j) { j["inputs"][0]["image"]["channels"] = 3; }),
      "\"pixels\" has 8 characters, 12 bytes of base64 have 16");
  EXPECT_EQ(
      flaw_after([](Json& j) { j["inputs"][0]["image"]["channels"] = 2; }),
      "an image has 2 channels, must be 1 or 3");
  EXPECT_EQ(flaw_after([](Json& j) { j["maps"][0]["input"] = 2; }),
            "a map is of input 2, there are 2");
  EXPECT_EQ(flaw_after([](Json& j) { j["maps"][1] = j["maps"][0]; }),
            "two maps are of the same input, layer and head");
}

TEST(Maps, RefusesWhatIsMissingOrOfAnotherType) {
  for (const char* key : {"inputs", "class_token", "rows", "columns", "maps"}) {
    EXPECT_NE(flaw_after([&](Json& j) { j.erase(key); }), "") << key;
    EXPECT_NE(flaw_after([&](Json& j) { j[key] = "x"; }), "") << key;
    EXPECT_NE(flaw_after([&](Json& j) { j[key] = nullptr; }), "") << key;
    EXPECT_NE(flaw_after([&](Json& j) { j[key] = Json::array(); }), "") << key;
  }
  for (const char* key : {"input", "layer", "head", "scale", "values"}) {
    EXPECT_NE(flaw_after([&](Json& j) { j["maps"][1].erase(key); }), "") << key;
    EXPECT_NE(flaw_after([&](Json& j) { j["maps"][1][key] = "?"; }), "") << key;
    EXPECT_NE(flaw_after([&](Json& j) { j["maps"][1][key] = -1; }), "") << key;
  }
  for (const char* key : {"width", "height", "channels", "patch", "pixels"}) {
    const auto image = [&](Json& j) -> Json& {
      return j["inputs"][1]["image"];
    };
    EXPECT_NE(flaw_after([&](Json& j) { image(j).erase(key); }), "") << key;
    EXPECT_NE(flaw_after([&](Json& j) { image(j)[key] = 0; }), "") << key;
    EXPECT_NE(flaw_after([&](Json& j) { image(j)[key] = 1.5; }), "") << key;
  }
  EXPECT_NE(flaw_after([](Json& j) { j["inputs"][0]["kind"] = "sound"; }), "");
  EXPECT_NE(flaw_after([](Json& j) { j["inputs"][0].erase("label"); }), "");
  EXPECT_NE(flaw_after([](Json& j) { j["inputs"][0] = 3; }), "");
  EXPECT_NE(flaw_after([](Json& j) { j["maps"][0] = 3; }), "");
}

TEST(Maps, RefusesWhatIsNoBase64) {
  for (const char* values :
       {"AAECAwQFBgcICQoLDA0ODw=", "AAECAwQFBgcICQoLDA0ODw===",
        "AAECAwQFBgcICQoLDA0OD===", "=AECAwQFBgcICQoLDA0ODw==",
        "AAECAwQFBgc<CQoLDA0ODw==", "AAECAwQFBgc-CQoLDA0ODw==",
        "AAECAwQFBgcICQoLDA0ODwAA", ""}) {
    EXPECT_NE(flaw_after([&](Json& j) { j["maps"][0]["values"] = values; }), "")
        << values;
  }
}

TEST(Maps, RefusesSizesWithoutMeasure) {
  EXPECT_NE(flaw_after([](Json& j) { j["rows"] = 1'000'000'000; }), "");
  EXPECT_NE(flaw_after([](Json& j) { j["columns"] = 18446744073709551615U; }),
            "");
  EXPECT_NE(flaw_of(small_maps(65)), "");
  EXPECT_NE(message_of<base::JsonError>(
                [] { parse_maps(std::string(kMaxMapsBytes + 1, ' ')); }),
            "");
  EXPECT_NE(message_of<base::JsonError>(
                [] { parse_maps(std::string(1 << 20, '[')); }),
            "");
}

TEST(Maps, OfLayersTakeOverWhatIsKnown) {
  Json json = test::layered_maps();
  EXPECT_EQ(base::parse_json(parse_maps(json.dump()).text(1)), json);
  json["layers"][0]["unknown"] = "x";
  json["layers"][0]["windows"]["unknown"] = "x";
  EXPECT_EQ(base::parse_json(parse_maps(json.dump()).text(1)),
            test::layered_maps());
  EXPECT_GE(parse_maps(json.dump()).bytes(1),
            parse_maps(json.dump()).text(1).size());
}

TEST(Maps, OfLayersRefuseWhatDoesNotAgree) {
  const auto flaw = [](const std::function<void(Json&)>& change) {
    Json json = test::layered_maps();
    change(json);
    return flaw_of(json);
  };
  EXPECT_EQ(flaw([](Json& j) { j["layers"][0]["kind"] = "row"; }),
            "layer 0 is of no known kind");
  EXPECT_EQ(flaw([](Json& j) { j["layers"][1]["layer"] = 0; }),
            "layer 0 is described twice");
  EXPECT_EQ(flaw([](Json& j) { j["maps"][2]["layer"] = 2; }),
            "a map is of layer 2, which is not described");
  EXPECT_EQ(flaw([](Json& j) { j["maps"][0]["window"] = 4; }),
            "a map is of window 4, there are 4");
  EXPECT_EQ(flaw([](Json& j) { j["maps"][0].erase("window"); }),
            "\"window\" is missing");
  EXPECT_EQ(flaw([](Json& j) { j["maps"][0]["window"] = 0; }),
            "two maps are of the same input, layer and head");
  EXPECT_EQ(flaw([](Json& j) { j["layers"][0]["windows"]["side"] = 2; }),
            "layer 0 is of kind window, but has 1 x 1 weights");
  EXPECT_EQ(flaw([](Json& j) { j["layers"][0]["windows"]["down"] = 1; }),
            "windows of 1 tokens are shifted by 1 and 0");
  EXPECT_EQ(flaw([](Json& j) { j["layers"][0]["windows"]["width"] = 3; }),
            "a map of 2 x 3 tokens of 2 pixels is larger than its image, "
            "4 x 4");
  EXPECT_EQ(flaw([](Json& j) { j["layers"][1]["rows"] = 1; }),
            "layer 1 is of kind channel, but has 1 x 2 weights");
  EXPECT_EQ(flaw([](Json& j) { j["layers"][2]["rows"] = 2; }),
            "layer 3 is of kind class, but has 2 x 5 weights");
  EXPECT_EQ(flaw([](Json& j) { j["layers"][2]["patch"] = 1; }),
            "an input has 16 tokens, the maps have 4");
  EXPECT_EQ(flaw([](Json& j) { j["layers"][2]["prefix"] = 0; }),
            "an input has 4 tokens, the maps have 5");
  EXPECT_EQ(flaw([](Json& j) { j["maps"][3]["values"] = "AAEC"; }),
            "\"values\" has 4 characters, 5 bytes of base64 have 8");
}

TEST(Maps, OfLayersRefuseWhatIsMissingOrOfAnotherType) {
  const auto flaw = [](std::size_t layer, const char* key, const Json& value) {
    Json json = test::layered_maps();
    if (value.is_discarded()) {
      json["layers"][layer].erase(key);
    } else {
      json["layers"][layer][key] = value;
    }
    return flaw_of(json);
  };
  const Json none(Json::value_t::discarded);
  for (const Json& value : {none, Json("x"), Json(-1), Json(1.5), Json()}) {
    for (const char* key :
         {"layer", "kind", "stage", "rows", "columns", "patch", "windows"}) {
      EXPECT_NE(flaw(0, key, value), "") << key;
    }
    EXPECT_NE(flaw(2, "prefix", value), "");
  }
  for (const Json& layers : {Json(), Json::array(), Json("x"), Json({1})}) {
    Json json = test::layered_maps();
    json["layers"] = layers;
    EXPECT_NE(flaw_of(json), "");
  }
  Json text = test::layered_maps();
  text["inputs"][0] = {{"label", ""}, {"kind", "text"}, {"tokens", {"a"}}};
  EXPECT_EQ(flaw_of(text), "an input has 1 tokens, the maps have 4");
}

TEST(Maps, CutAnywhereItIsRefused) {
  for (const Json& json : {small_maps(1, 1), test::layered_maps()}) {
    const std::string text = json.dump();
    for (std::size_t length = 0; length < text.size(); ++length) {
      EXPECT_NE(message_of<base::JsonError>(
                    [&] { parse_maps(text.substr(0, length)); }),
                "")
          << length;
    }
  }
}

}  // namespace maps_test
}  // namespace polyattn::report
