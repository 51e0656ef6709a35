#include "train/examples.h"

#include "train/image_examples.h"
#include "train/image_file_examples.h"
#include "train/overloaded.h"
#include "train/physics_task.h"
#include "train/probe_examples.h"
#include "train/sequence_examples.h"
#include "train/text_examples.h"

namespace polyattn::train {
std::unique_ptr<Examples> make_examples(std::shared_ptr<const TaskData> data,
                                        const run::Config& config) {
  check_examples(*data, config);
  return std::visit(
      Overloaded{
          [&](const data::ImageSplits& images) -> std::unique_ptr<Examples> {
            return std::make_unique<ImageExamples>(data, images, config);
          },
          [&](const data::ImageFileSplits& files) -> std::unique_ptr<Examples> {
            return std::make_unique<ImageFileExamples>(data, files, config);
          },
          [&](const data::TextSplits& text) -> std::unique_ptr<Examples> {
            return std::make_unique<TextExamples>(data, text, config);
          },
          [&](const data::ProbeSplits& probes) -> std::unique_ptr<Examples> {
            return std::make_unique<ProbeExamples>(data, probes, config);
          },
          [&](const data::SequenceSplits& sequences)
              -> std::unique_ptr<Examples> {
            return std::make_unique<SequenceExamples>(data, sequences, config);
          },
          [&](const physics::Problem& problem) -> std::unique_ptr<Examples> {
            return std::make_unique<PhysicsExamples>(problem);
          }},
      *data);
}

}  // namespace polyattn::train
