// Weights, inputs and logits that make_public_weights.py has written, in the
// folder POLYATTN_WEIGHTS: our models give the same logits. Then saves models
// of its own there, for the script to check.
#include <torch/autograd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "nn/support.h"
#include "polyattn/io/torch_file.h"
#include "polyattn/models/deit.h"
#include "polyattn/models/gpt.h"
#include "polyattn/models/lra.h"
#include "polyattn/models/pinn.h"
#include "polyattn/models/pinnsformer.h"
#include "polyattn/models/state_file.h"
#include "polyattn/models/swin.h"
#include "polyattn/models/vit.h"
#include "polyattn/models/xcit.h"
#include "support/message_of.h"

namespace polyattn::models {
namespace public_weights_test {

// f32 through a few layers, against torch's own kernels.
constexpr double kTolerance = 1e-4;

std::filesystem::path folder() {
  const char* path = std::getenv("POLYATTN_WEIGHTS");
  if (path == nullptr) throw std::runtime_error("POLYATTN_WEIGHTS is not set");
  return path;
}

ViT small_vit() {
  auto options = ViTOptions(64, 3, 4).image_size(32).patch_size(8).classes(10);
  options.block().mlp().hidden(128);
  ViT model(options);
  model->eval();
  return model;
}

ViT small_deit(bool distilled) {
  ViT model(
      ViTOptions(48, 3, 3).image_size(32).patch_size(8).classes(10).distilled(
          distilled));
  model->eval();
  return model;
}

Gpt small_gpt(bool tied = true) {
  Gpt model(GptOptions(48, 3, 4).vocabulary(97).context(24).tied(tied));
  model->eval();
  return model;
}

// Nothing stays at 0 or 1.
void randomise(torch::nn::Module& module) {
  for (auto& parameter : module.parameters()) {
    parameter.add_(0.1 * torch::randn_like(parameter));
  }
}

TEST(PublicWeights, Torchvision) {
  const torch::NoGradGuard no_grad;
  NamedTensors tensors = load_tensors(folder() / "vit.safetensors");
  const NamedTensors io = load_tensors(folder() / "vit_io.safetensors");
  ViT model = small_vit();
  load_torchvision(model, tensors);
  EXPECT_LE(
      test::relative_error(model->forward(io.at("input")), io.at("logits")),
      kTolerance);
}

TEST(PublicWeights, TorchvisionByItsOldNames) {
  const torch::NoGradGuard no_grad;
  const NamedTensors io = load_tensors(folder() / "vit_io.safetensors");
  NamedTensors tensors;
  for (const auto& [name, tensor] :
       load_tensors(folder() / "vit.safetensors")) {
    std::string old = name;
    for (const auto& [now, before] : {std::pair{".mlp.0.", ".mlp.linear_1."},
                                      std::pair{".mlp.3.", ".mlp.linear_2."}}) {
      const auto at = old.find(now);
      if (at != std::string::npos) {
        old.replace(at, std::string(now).size(), before);
      }
    }
    tensors[old] = tensor;
  }
  ASSERT_TRUE(
      tensors.contains("encoder.layers.encoder_layer_2.mlp.linear_2.bias"));
  ViT model = small_vit();
  load_torchvision(model, tensors);
  EXPECT_LE(
      test::relative_error(model->forward(io.at("input")), io.at("logits")),
      kTolerance);
}

TEST(PublicWeights, Deit) {
  const torch::NoGradGuard no_grad;
  const NamedTensors io = load_tensors(folder() / "deit_io.safetensors");
  ViT model = small_deit(/*distilled=*/false);
  load_deit(model, load_tensors(folder() / "deit.safetensors"));
  EXPECT_LE(
      test::relative_error(model->forward(io.at("input")), io.at("logits")),
      kTolerance);
}

TEST(PublicWeights, DistilledDeit) {
  const torch::NoGradGuard no_grad;
  const NamedTensors io =
      load_tensors(folder() / "deit_distilled_io.safetensors");
  const auto weights = load_tensors(folder() / "deit_distilled.safetensors");
  ViT model = small_deit(/*distilled=*/true);
  load_deit(model, weights);
  const torch::Tensor images = io.at("input");
  const DistilledLogits logits = model->distilled_logits(images);
  EXPECT_LE(test::relative_error(logits.head, io.at("head")), kTolerance);
  EXPECT_LE(test::relative_error(logits.head_dist, io.at("head_dist")),
            kTolerance);
  EXPECT_LE(test::relative_error(model->forward(images), io.at("logits")),
            kTolerance);
  ViT plain = small_deit(/*distilled=*/false);
  EXPECT_THROW(load_deit(plain, weights), WeightsError);
}

Swin small_swin(std::int64_t version) {
  Swin model(SwinOptions(24, {2, 3, 2}, {3, 6, 12})
                 .version(version)
                 .patch_size(2)
                 .window(4)
                 .classes(10));
  model->eval();
  return model;
}

void expect_swin_logits(Swin& model, std::int64_t version) {
  const torch::NoGradGuard no_grad;
  const NamedTensors io = load_tensors(
      folder() / ("swin" + std::to_string(version) + "_io.safetensors"));
  ASSERT_EQ(io.size(), 10U);
  for (const char* i : {"0", "1", "2", "3", "4"}) {
    SCOPED_TRACE(io.at(std::string("input") + i).sizes());
    EXPECT_LE(
        test::relative_error(model->forward(io.at(std::string("input") + i)),
                             io.at(std::string("logits") + i)),
        kTolerance);
  }
}

TEST(PublicWeights, TorchvisionSwin) {
  for (const std::int64_t version : {1, 2}) {
    SCOPED_TRACE(version);
    Swin model = small_swin(version);
    load_torchvision(model,
                     load_tensors(folder() / ("swin" + std::to_string(version) +
                                              ".safetensors")));
    expect_swin_logits(model, version);
  }
}

// From torchvision's names: `shift` is 1 where the merging is counted with the
// stage behind it, as in timm, and 0 in the files that came with the paper. Of
// version 2 biases are apart.
NamedTensors with_names_of_timm(const NamedTensors& tensors, int shift,
                                bool biases_apart) {
  NamedTensors theirs;
  for (const auto& [name, tensor] : tensors) {
    std::string key = name;
    const auto replace = [&](const std::string& from, const std::string& to) {
      const auto at = key.find(from);
      if (at != std::string::npos) key.replace(at, from.size(), to);
    };
    replace("features.0.0", "patch_embed.proj");
    replace("features.0.2", "patch_embed.norm");
    for (int s = 0; s < 3; ++s) {
      replace("features." + std::to_string(2 * s + 1) + '.',
              "layers." + std::to_string(s) + ".blocks.");
      replace("features." + std::to_string(2 * s + 2) + '.',
              "layers." + std::to_string(s + shift) + ".downsample.");
    }
    replace(".mlp.0", ".mlp.fc1");
    replace(".mlp.3", ".mlp.fc2");
    if (shift == 1) replace("head.", "head.fc.");
    theirs[key] = tensor;
    if (!biases_apart || !key.ends_with("qkv.bias")) continue;
    const auto parts = tensor.chunk(3);
    theirs.erase(key);
    replace("qkv.bias", "");
    theirs[key + "q_bias"] = parts[0];
    theirs[key + "v_bias"] = parts[2];
  }
  if (shift == 0) theirs["layers.0.blocks.1.attn_mask"] = torch::zeros({1});
  return theirs;
}

TEST(PublicWeights, SwinByTheNamesOfTimm) {
  for (const std::int64_t version : {1, 2}) {
    const NamedTensors tensors = load_tensors(
        folder() / ("swin" + std::to_string(version) + ".safetensors"));
    for (const int shift : {0, 1}) {
      SCOPED_TRACE(testing::Message() << version << ' ' << shift);
      NamedTensors theirs = with_names_of_timm(tensors, shift, version == 2);
      ASSERT_TRUE(theirs.contains(shift == 1
                                      ? "layers.2.downsample.norm.bias"
                                      : "layers.0.downsample.norm.bias"));
      Swin model = small_swin(version);
      load_timm(model, theirs);
      expect_swin_logits(model, version);
      theirs.erase(version == 1 ? "layers.0.blocks.0.attn.qkv.bias"
                                : "layers.0.blocks.0.attn.v_bias");
      EXPECT_THROW(load_timm(model, theirs), models::WeightsError);
    }
  }
}

TEST(PublicWeights, Gpt2) {
  const torch::NoGradGuard no_grad;
  NamedTensors tensors = load_tensors(folder() / "gpt.safetensors");
  const NamedTensors io = load_tensors(folder() / "gpt_io.safetensors");
  const auto error = [&](Gpt model) {
    load_gpt2(model, tensors);
    return test::relative_error(model->forward(io.at("input")),
                                io.at("logits"));
  };
  EXPECT_LE(error(small_gpt()), kTolerance);
  EXPECT_LE(error(small_gpt(/*tied=*/false)), kTolerance);
  tensors.erase("lm_head.weight");
  EXPECT_LE(error(small_gpt(/*tied=*/false)), kTolerance);
  NamedTensors bare;
  for (const auto& [name, tensor] : tensors) {
    bare[name.substr(std::string("transformer.").size())] = tensor;
  }
  tensors = bare;
  EXPECT_LE(error(small_gpt()), kTolerance);
}

// By the names of facebookresearch, in a file of torch.save, and by timm's.
TEST(PublicWeights, Xcit) {
  const torch::NoGradGuard no_grad;
  for (const std::int64_t patch : {16, 8}) {
    const std::string name = "xcit_p" + std::to_string(patch);
    const NamedTensors io = load_tensors(folder() / (name + "_io.safetensors"));
    for (const char* end : {".pth", "_timm.safetensors"}) {
      SCOPED_TRACE(name + end);
      XCiT model(
          XCiTOptions(48, 2, 4).patch_size(patch).classes(10).tokens_norm(
              patch == 8));
      load_xcit(model, load_tensors(folder() / (name + end)));
      model->eval();
      EXPECT_LE(
          test::relative_error(model->forward(io.at("input")), io.at("logits")),
          kTolerance);
    }
  }
}

// Sums of the gradients of u [P, N, 1] by the rows, as a function of them.
torch::Tensor gradient(const torch::Tensor& u, const torch::Tensor& rows) {
  return torch::autograd::grad({u}, {rows}, {torch::ones_like(u)},
                               /*retain_graph=*/true,
                               /*create_graph=*/true)[0];
}

// In f64, where derivatives of three orders multiply rounding by some hundreds
// of additions.
constexpr double kDerivativeTolerance = 1e-11;

template <typename Model>
void expect_twin(Model model, const torch::Tensor& first,
                 const std::string& name) {
  SCOPED_TRACE(name);
  const NamedTensors io = load_tensors(folder() / (name + "_io.safetensors"));
  const auto expect_same = [&](const torch::Tensor& ours, const char* theirs) {
    EXPECT_LE(test::relative_error(ours, io.at(theirs)), kDerivativeTolerance)
        << theirs;
  };
  const auto rows = io.at("sequences").requires_grad_();
  const auto u = model->forward(rows);
  const auto du = gradient(u, rows);
  const auto u_x = gradient(du.select(-1, 0), rows);
  const auto u_t = gradient(du.select(-1, 1), rows);
  expect_same(u, "u");
  expect_same(du, "du");
  expect_same(u_x, "u_x");
  expect_same(u_t, "u_t");
  const auto loss = (u_t.select(-1, 1) - 4 * u_x.select(-1, 0)).square().mean();
  expect_same(torch::autograd::grad({loss}, {first})[0], "gradient");
}

TEST(PublicWeights, Pinnsformer) {
  for (const auto& [name, formula] : {std::pair("softmax", "softmax"),
                                      {"cubic", "x^3/sqrt(N)"},
                                      {"square", "x^2/sqrt(N)"}}) {
    const std::string base = std::string("pinnsformer_") + name;
    Pinnsformer model(PinnsformerOptions()
                          .dim(8)
                          .feed_forward(12)
                          .hidden(16)
                          .step(0.1)
                          .activation(formula));
    model->to(torch::kDouble);
    load_state(*model, load_tensors(folder() / (base + ".pt")));
    const NamedTensors io = load_tensors(folder() / (base + "_io.safetensors"));
    EXPECT_SAME(model->sequences(io.at("points")), io.at("sequences"));
    expect_twin(model, model->linear_emb->weight, base);
  }
}

TEST(PublicWeights, Pinn) {
  Pinn model(PinnOptions().hidden(16));
  model->to(torch::kDouble);
  load_state(*model, load_tensors(folder() / "pinn.pt"));
  expect_twin(model, model->linear->ptr(0)->named_parameters()["weight"],
              "pinn");
}

// Nystromformer's, in a file of torch.save with more in it than the weights.
TEST(PublicWeights, Lra) {
  const torch::NoGradGuard no_grad;
  for (const auto& [name, classes, towers] : {std::tuple("lra_text", 3, 1),
                                              {"lra_retrieval", 2, 2},
                                              {"lra_nystrom", 3, 2}}) {
    SCOPED_TRACE(name);
    const std::string base = name;
    const NamedTensors io = load_tensors(folder() / (base + "_io.safetensors"));
    SequenceClassifierOptions options(32, 2, 4);
    options.vocabulary(40).context(24).classes(classes).towers(towers);
    options.head("mlp").pooling("padded").mask_zeros(true);
    options.block().mlp().hidden(48);
    if (base == "lra_nystrom") {
      options.block().nystrom(nn::NystromOptions().landmarks(4).conv(5));
    }
    SequenceClassifier model(options);
    load_lra(model, load_tensors(folder() / (base + ".pth")));
    model->eval();
    const torch::Tensor& tokens = io.at("input");
    for (const torch::Tensor& lengths : {torch::Tensor(), io.at("lengths")}) {
      EXPECT_LE(test::relative_error(model->forward(tokens, lengths),
                                     io.at("logits")),
                kTolerance);
    }
    // Batches are padded to their longest sequence, not to all positions.
    const torch::Tensor short_rows = tokens.narrow(0, 0, 2 * towers).clone();
    short_rows.narrow(1, 10, 14).zero_();
    EXPECT_LE(test::relative_error(model->forward(short_rows.narrow(1, 0, 10)),
                                   model->forward(short_rows)),
              kTolerance);
  }
}

void expect_same(const NamedTensors& actual, const NamedTensors& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (const auto& [name, tensor] : expected) {
    SCOPED_TRACE(name);
    ASSERT_TRUE(actual.contains(name));
    EXPECT_EQ(actual.at(name).scalar_type(), tensor.scalar_type());
    EXPECT_TRUE(actual.at(name).equal(tensor));
  }
}

TEST(PublicWeights, FilesOfTorch) {
  const NamedTensors types = load_tensors(folder() / "types.safetensors");
  ASSERT_EQ(types.size(), 12U);
  for (const char* file : {"types.pth", "types_wrapped.pt",
                           "types_protocol.bin", "types_named_by_nobody"}) {
    SCOPED_TRACE(file);
    expect_same(load_tensors(folder() / file), types);
  }
  const NamedTensors views = load_tensors(folder() / "views.pth");
  expect_same(views, load_tensors(folder() / "views.safetensors"));
  EXPECT_EQ(views.at("part").strides(), (std::vector<std::int64_t>{1, 3}));
  EXPECT_TRUE(views.at("part").is_alias_of(views.at("parameter")));
  // The weights of a module, with its _metadata.
  expect_same(load_tensors(folder() / "vit.pth"),
              load_tensors(folder() / "vit.safetensors"));
}

TEST(PublicWeights, FilesOfTorchThatAreRefused) {
  const auto refusal = [](const char* file) {
    const std::string path = (folder() / file).string();
    const std::string message = polyattn::test::message_of<io::TorchFileError>(
        [&] { load_tensors(path); });
    const std::string before = "[torch_file] " + path + ": ";
    EXPECT_TRUE(message.starts_with(before)) << message;
    return message.substr(std::min(before.size(), message.size()));
  };
  EXPECT_EQ(refusal("harm.pth"),
            "it names \"posix.system\", which weights do not need and which is "
            "not run. If you trust the file, load it with Python and save the "
            "state_dict alone");
  EXPECT_FALSE(std::filesystem::exists(folder() / "harm"));
  EXPECT_TRUE(refusal("old.pth").starts_with(
      "it has the format of torch before 1.6. "));
  EXPECT_EQ(refusal("script.pt"),
            "it is a program of TorchScript: save the state_dict of its module "
            "instead");
}

TEST(PublicWeights, SavesForPython) {
  const torch::NoGradGuard no_grad;
  torch::manual_seed(1);
  const auto save = [&](torch::nn::Module& model, const char* file,
                        const torch::Tensor& input,
                        const torch::Tensor& logits) {
    NamedTensors tensors = state_of(model);
    tensors["io.input"] = input;
    tensors["io.logits"] = logits;
    save_tensors(folder() / file, tensors, {{"format", "pt"}});
  };
  ViT vit = small_vit();
  randomise(*vit);
  const auto images = torch::randn({2, 3, 32, 32});
  save(*vit, "saved_vit.safetensors", images, vit->forward(images));
  ViT deit = small_deit(/*distilled=*/true);
  randomise(*deit);
  save(*deit, "saved_deit.safetensors", images, deit->forward(images));
  Gpt gpt = small_gpt();
  randomise(*gpt);
  const auto tokens = torch::randint(97, {2, 24}, torch::kLong);
  save(*gpt, "saved_gpt.safetensors", tokens, gpt->forward(tokens));
}

}  // namespace public_weights_test
}  // namespace polyattn::models
