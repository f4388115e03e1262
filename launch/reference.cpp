#include "launch/reference.h"

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "launch/help.h"
#include "launch/messages.h"

namespace devsan::launch {
namespace {

namespace fs = std::filesystem;

OptionText read_option(const CLI::Option& option) {
  OptionText text;
  for (const std::string& name : option.get_snames()) text.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) text.names.push_back("--" + name);
  if (text.names.empty()) text.names.push_back(option.get_name(true));
  if (option.get_items_expected_max() > 0) {
    text.value = option.get_option_text().empty() ? option.get_type_name() : option.get_option_text();
    text.value_may_lack = option.get_items_expected_min() == 0;
  }
  text.is_list = option.get_items_expected_max() > 1;
  if (text.value.starts_with('[') && text.value.ends_with(']'))
    text.value = text.value.substr(1, text.value.size() - 2);
  text.help = option.get_description();
  return text;
}

void read_options(const CLI::App& app, std::vector<OptionText>& options, std::vector<OptionText>& positionals) {
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group().empty()) continue;
    (option->get_positional() ? positionals : options).push_back(read_option(*option));
  }
}

void write_text(const fs::path& path, const std::string& text) {
  std::error_code error;
  fs::create_directories(path.parent_path(), error);
  if (error) throw Failure("cannot create " + path.parent_path().string() + ": " + error.message());
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << text << std::flush;
  if (!file) throw Failure("cannot write_text " + path.string() + ": " + std::strerror(errno));
}

}  // namespace

Reference read_reference(const CLI::App& app, std::string version, ValueWords words) {
  Reference reference{std::move(version), {}, {}, std::move(words)};
  std::vector<OptionText> none;
  read_options(app, reference.options, none);
  for (const CLI::App* command : shown_commands(app)) {
    CommandText text{
        command->get_name(), command->get_description(), command->get_footer(), takes_command(*command), {}, {}};
    read_options(*command, text.options, text.positionals);
    reference.commands.push_back(std::move(text));
  }
  return reference;
}

void write_reference(const Reference& reference, const fs::path& share) {
  write_text(share / "man/man1/devsan.1", man_page(reference));
  write_text(share / "bash-completion/completions/devsan", bash_completion(reference));
  write_text(share / "zsh/site-functions/_devsan", zsh_completion(reference));
  write_text(share / "fish/vendor_completions.d/devsan.fish", fish_completion(reference));
}

}  // namespace devsan::launch
