#include <stdexcept>
#include <string>

#include "cli/command.h"

namespace polyattn::cli {
namespace {

class AbsentCommand : public Command {
 public:
  AbsentCommand(CLI::App& parent, const std::string& name)
      : app_(parent.add_subcommand(name, "(not in this build: needs torch)")) {
    app_->allow_extras();
  }

  bool chosen() const override { return app_->parsed(); }

  int run() override {
    throw std::runtime_error(
        app_->get_name() +
        " is not in this build: configure it with "
        "-DPOLYATTN_TORCH=ON, where libtorch is installed");
  }

 private:
  CLI::App* app_;
};

}  // namespace

std::vector<std::unique_ptr<Command>> training_commands(CLI::App& parent) {
  std::vector<std::unique_ptr<Command>> commands;
  for (const char* name : {"compare", "train", "eval", "generate"}) {
    commands.push_back(std::make_unique<AbsentCommand>(parent, name));
  }
  return commands;
}

}  // namespace polyattn::cli
