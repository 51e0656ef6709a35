// Named models: what their names decide, and what is refused beside them.
#include "train/run/models.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "support.h"
#include "train/run/fields.h"
#include "train/run/tasks.h"

namespace polyattn::run {
namespace models_test {

Config with(const std::vector<std::string>& sets, std::string_view text = "") {
  return parse_config(text, "a.toml", test::settings_of(sets));
}

std::string refusal(const std::vector<std::string>& sets,
                    std::string_view text = "") {
  return test::message_of<ConfigError>([&] { with(sets, text); });
}

TEST(Models, NamesAreDistinctAndEveryTaskHasOne) {
  std::set<std::string_view> names;
  for (const ModelEntry& model : models()) {
    EXPECT_TRUE(names.insert(model.name).second) << model.name;
    EXPECT_EQ(find_model(model.name), &model);
  }
  EXPECT_EQ(find_model("vit-huge"), nullptr);
  for (const TaskEntry& task : kTasks) {
    EXPECT_EQ(default_config(task.name).model.name,
              default_model(task.kind)->name);
  }
  EXPECT_EQ(default_config("cifar10").model.name, "vit");
  EXPECT_EQ(default_config("sotu").model.name, "gpt");
  EXPECT_EQ(default_config("imdb").model.name, "classifier");
  EXPECT_EQ(default_config("wave").model.name, "pinnsformer");
}

TEST(Models, EveryOneGivesAConfigThatIsRight) {
  for (const TaskEntry& task : kTasks) {
    for (const ModelEntry& model : models()) {
      const bool fits = (model.tasks & task.kind) != 0;
      if (!fits) {
        EXPECT_THROW(default_config(task.name, model.name), ConfigError);
        continue;
      }
      Config config = default_config(task.name, model.name);
      EXPECT_EQ(config.model.name, model.name);
      // Patches of 16, and windows of 32, do not fit images of 28 pixels.
      if (task.image_side > 0 && (task.image_side % config.model.patch != 0 ||
                                  task.image_side < model.sizes.least_side)) {
        EXPECT_THROW(check_config(config), ConfigError);
        continue;
      }
      EXPECT_NO_THROW(check_config(config)) << model.name << task.name;
      EXPECT_EQ(parse_config(config_text(config), "a.toml"), config);
    }
  }
}

TEST(Models, ANameDecidesTheSizes) {
  const std::vector<std::string> named = {"task.name=cifar10",
                                          "model.name=vit-tiny32"};
  const Config config = with(named);
  EXPECT_EQ(config, default_config("cifar10", "vit-tiny32"));
  EXPECT_EQ(config.model.dim, 192);
  EXPECT_EQ(config.model.depth, 6);
  EXPECT_EQ(config.model.heads, 3);
  EXPECT_EQ(config.model.mlp, 768);
  EXPECT_EQ(config.model.patch, 4);
  // What is not of its size is that of the task.
  EXPECT_EQ(config.model.initialisation, "xavier");
  EXPECT_EQ(config.train, default_config("cifar10").train);
  // Wherever the name stands.
  EXPECT_EQ(with({}, "[model]\nactivation = \"x\"\nname = \"vit-tiny28\"\n")
                .model.depth,
            4);
  // Of a task with layer scales and without a class token.
  const Config grey = with({"model.name=vit-tiny28"});
  EXPECT_EQ(grey.model.layer_scale, 0);
  EXPECT_EQ(grey.model.pooling, "class");
  EXPECT_EQ(default_config("fashion-mnist").model.pooling, "mean");
}

// Also the value that is the task's default: who gives it wants it.
TEST(Models, SizesBesideANameAreRefused) {
  const auto beside = [](const std::string& set) {
    return refusal({"task.name=cifar10", "model.name=vit-tiny32", set});
  };
  EXPECT_EQ(beside("model.dim=128"),
            "[config] --set: model.dim is 128, but the model vit-tiny32 has "
            "192: leave it out");
  EXPECT_EQ(beside("model.depth=4"),
            "[config] --set: model.depth is 4, but the model vit-tiny32 has 6: "
            "leave it out");
  for (const char* key : {"heads", "mlp", "patch"}) {
    EXPECT_NE(beside(std::string("model.") + key + "=2"), "") << key;
  }
  EXPECT_EQ(beside("model.dim=192"), "");
  EXPECT_EQ(
      refusal({}, "[model]\nname = 'vit-tiny28'\ndim = 32\n"),
      "[config] a.toml:3:1: model.dim is 32, but the model vit-tiny28 has "
      "64: leave it out");
  EXPECT_EQ(refusal({"model.name=vit-distilled", "model.pooling=mean"}),
            "[config] --set: model.pooling is \"mean\", but the model "
            "vit-distilled has \"class\": leave it out");
}

TEST(Models, ThoseOfLongRangeArena) {
  EXPECT_EQ(default_config("listops", "lra-small").model.depth, 4);
  const ModelConfig ours = default_config("pathfinder", "lra").model;
  EXPECT_EQ(ours.pooling, "mean");
  EXPECT_EQ(ours.head, "linear");
  EXPECT_EQ(ours.dim, 64);
  const ModelConfig published =
      default_config("pathfinder", "lra-nystromformer").model;
  EXPECT_EQ(published.pooling, "padded");
  EXPECT_EQ(published.head, "mlp");
  EXPECT_TRUE(published.mask_zeros);
  EXPECT_EQ(published.dropout, 0.1);
  EXPECT_EQ(published.attention_dropout, 0.1);

  const std::vector<std::string> named = {"task.name=imdb",
                                          "model.name=lra-nystromformer"};
  const auto beside = [&](const std::string& set) {
    return refusal({named[0], named[1], set});
  };
  EXPECT_EQ(beside("model.attention=nystrom"), "");
  EXPECT_EQ(beside("model.attention_dropout=0"), "");
  EXPECT_EQ(beside("model.pooling=mean"),
            "[config] --set: model.pooling is \"mean\", but the model "
            "lra-nystromformer has \"padded\": leave it out");
  EXPECT_NE(beside("model.head=linear"), "");
  EXPECT_NE(beside("model.mask_zeros=false"), "");
  EXPECT_NE(beside("model.positions=rotary"), "");
  EXPECT_EQ(refusal({"task.name=imdb", "model.name=lra", "model.head=mlp"}),
            "");
}

// Its positions are as many as were published.
TEST(Models, SequencesLongerThanPositionsAreRefused) {
  const std::string name = "model.name=lra-nystromformer";
  EXPECT_EQ(refusal({"task.name=imdb", name, "task.context=4096"}), "");
  EXPECT_EQ(refusal({"task.name=imdb", name, "task.context=4097"}),
            "[config] --set: model.name is lra-nystromformer, which has 4096 "
            "positions of imdb, but task.context is 4097");
  EXPECT_EQ(refusal({"task.name=listops", name, "task.max_length=2049"}),
            "[config] --set: model.name is lra-nystromformer, which has 2048 "
            "positions of listops, but task.max_length is 2049");
  EXPECT_NE(refusal({"task.name=aan", name, "task.context=5000"}), "");
}

TEST(Models, ImagesSmallerThanAWindowAreRefused) {
  EXPECT_EQ(refusal({"model.name=swin-v2-t"}),
            "[config] --set: model.name is swin-v2-t, whose images have 32 "
            "pixels or more, but those of fashion-mnist have 28");
  EXPECT_EQ(refusal({"model.name=swin-t"}), "");
  EXPECT_EQ(with({"model.name=swin-tiny28"}).model.pooling, "mean");
}

// A part that a family does not have is refused, not left out.
TEST(Models, PartsThatAFamilyLacksAreRefused) {
  EXPECT_EQ(refusal({"model.name=xcit-tiny28", "model.qk_norm=rms"}),
            "[config] --set: model.qk_norm is \"rms\", but the model "
            "xcit-tiny28 has \"none\": leave it out");
  EXPECT_EQ(refusal({"model.name=xcit-tiny28", "model.norm_clamp=rescale"}),
            "[config] --set: model.norm_clamp is \"rescale\", but the model "
            "xcit-tiny28 has \"none\": leave it out");
  EXPECT_EQ(refusal({"model.name=xcit-tiny28", "model.layer_scale=0.1"}),
            "[config] --set: model.layer_scale is 0.1, but the model "
            "xcit-tiny28 has 1.0: leave it out");
  for (const Field& field : fields()) {
    const ModelEntry& model = *find_model("xcit-tiny28");
    if (field.section != "model" || (field.tasks & kImages) == 0) continue;
    Config config = default_config("mnist", "xcit-tiny28");
    const Value value = field.get(config);
    if (heeds(model, field.key) || std::holds_alternative<std::string>(value)) {
      continue;
    }
    if (const auto* flag = std::get_if<bool>(&value)) {
      field.set(config, !*flag);
    } else if (const auto* count = std::get_if<std::int64_t>(&value)) {
      field.set(config, *count + 1);
    } else {
      field.set(config, std::get<double>(value) / 2 + 0.25);
    }
    EXPECT_THROW(check_config(config), ConfigError) << field.name();
  }
}

// Published Swins have none; XCiT's are of its sizes.
TEST(Models, SwinTakesLayerScales) {
  EXPECT_EQ(default_config("cifar10", "swin-tiny32").model.layer_scale, 0);
  const std::string name = "model.name=swin-tiny28";
  EXPECT_EQ(with({name}).model.layer_scale, 0);
  const Config config = with({name, "model.layer_scale=0.1"});
  EXPECT_EQ(config.model.layer_scale, 0.1);
  EXPECT_EQ(parse_config(config_text(config), "a.toml"), config);
}

TEST(Models, WhatTheyHeedIsApplied) {
  for (const char* set :
       {"model.activation=x^3/sqrt(N)", "model.kv_heads=1",
        "model.pooling=mean", "model.norm=rms", "model.qk_norm=layer",
        "model.learned_scale=true", "model.output_norm=rms",
        "model.output_gate=true", "model.center_values=true",
        "model.short_conv=3", "model.layer_scale=0.5",
        "model.initialisation=vit", "model.start=plain",
        "model.start_factor=0.5", "model.qk_gain=2", "model.dropout=0.1",
        "model.norm_clamp=rescale", "model.attention_dropout=0.1",
        "model.drop_path=0.1"}) {
    const Config config = with({"model.name=vit-tiny28", set});
    EXPECT_NE(config.model, default_config("mnist", "vit-tiny28").model) << set;
    EXPECT_EQ(config.model.dim, 64);
  }
}

TEST(Models, UnknownNamesGetTheNearest) {
  EXPECT_EQ(
      refusal({"model.name=vit-tiny23"}),
      "[config] --set: model.name is \"vit-tiny23\", which is no model of "
      "fashion-mnist: did you mean vit-tiny28?");
  EXPECT_EQ(
      refusal({}, "[model]\nname = 'resnet'\n")
          .find("[config] a.toml:2:1: model.name is \"resnet\", which is no "
                "model of fashion-mnist: models of fashion-mnist are vit, "
                "vit-distilled, vit-tiny28, "),
      0U);
  EXPECT_EQ(
      refusal({"task.name=sotu", "model.name=vit-tiny32"}),
      "[config] --set: model.name is \"vit-tiny32\", which is no model of "
      "sotu: models of sotu are gpt");
  // One problem is one message, not one for each key that the name decides.
  EXPECT_EQ(refusal({"model.name=", "model.dim=66"}).find('\n'),
            std::string::npos);
  EXPECT_EQ(test::message_of<ConfigError>(
                [] { default_config("cifar10", "vit-tiny23"); }),
            "[config] unknown model \"vit-tiny23\" of cifar10: did you mean "
            "vit-tiny28?");
}

TEST(Models, AreListedWithTheKeys) {
  const std::string text = describe_config("cifar10", "deit-tiny32-distilled");
  EXPECT_NE(
      text.find("\nmodel.name is one of vit, vit-distilled, vit-tiny28, "),
      std::string::npos)
      << text;
  EXPECT_NE(text.find("\nmodel.dim                       192 "),
            std::string::npos)
      << text;
  EXPECT_EQ(model_names(kTexts), "gpt");
}

TEST(Models, AreTheSameForAllRunsOfAComparison) {
  EXPECT_STREQ(why_shared("model.name"),
               "activations are compared in one model");
}

}  // namespace models_test
}  // namespace polyattn::run
