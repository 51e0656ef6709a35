#include "cli/cli.h"

int main(int argc, char** argv) { return polyattn::cli::run(argc, argv); }
