// How --help reads: at most 80 columns, and for `devsan` itself a first page for those who see it for the first time.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

namespace devsan::launch {

class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const override;
  std::string make_usage(const CLI::App* app, std::string name) const override;
  std::string make_option_desc(const CLI::Option* option) const override;
  std::string make_footer(const CLI::App* app) const override;
};

// Whether a command of the user's follows the options and "--", which CLI11 does not know.
bool takes_command(const CLI::App& command);

// The commands of an app that help, man page and completions show: the hidden ones are in no group.
std::vector<const CLI::App*> shown_commands(const CLI::App& app);

}  // namespace devsan::launch
