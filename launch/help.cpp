#include "launch/help.h"

#include <sstream>

namespace devsan::launch {
namespace {

constexpr std::size_t kColumns = 80;
constexpr std::size_t kNameColumns = 30;  // CLI11's own width of the column of names

constexpr char kExamples[] = R"(Usage: devsan COMMAND [OPTIONS]
Finds tensors that are on the wrong device, and shows how they got there.

  devsan run -- python train.py              run a program under devsan
  devsan view devsan-out/RUN                 show what a run found
  LD_PRELOAD=$(devsan lib) python train.py   preload devsan by hand

)";

constexpr char kRest[] = R"(
`devsan COMMAND --help` lists a command's options; `man devsan` has it all.
)";

std::string wrapped(const std::string& text, std::size_t columns) {
  std::string lines;
  std::size_t used = 0;
  std::istringstream words(text);
  for (std::string word; words >> word; used += word.size()) {
    if (used > 0) {
      const bool fits = used + 1 + word.size() <= columns;
      lines += fits ? ' ' : '\n';
      used = fits ? used + 1 : 0;
    }
    lines += word;
  }
  return lines;
}

std::string row(const std::string& name, const std::string& text) {
  constexpr std::size_t kWidth = 14;
  const std::string indented = "  " + name;
  return indented + std::string(kWidth - std::min(kWidth, indented.size()), ' ') + text + "\n";
}

std::string front_page(const CLI::App& app) {
  std::string page = std::string(kExamples) + "Commands:\n";
  for (const CLI::App* command : shown_commands(app)) page += row(command->get_name(), command->get_description());
  page += "\nOptions:\n";
  for (const CLI::Option* option : app.get_options())
    page += row(option->get_name(false, true), option->get_description());
  return page + kRest;
}

}  // namespace

std::vector<const CLI::App*> shown_commands(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App* command) { return !command->get_group().empty(); });
}

std::string HelpFormatter::make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const {
  return app->get_parent() == nullptr ? front_page(*app) : CLI::Formatter::make_help(app, std::move(name), mode);
}

bool takes_command(const CLI::App& command) {
  return command.get_name() == "run" || command.get_name() == "preflight";
}

std::string HelpFormatter::make_usage(const CLI::App* app, std::string name) const {
  if (takes_command(*app)) return "Usage: devsan " + app->get_name() + " [OPTIONS] -- CMD [ARGUMENTS]...\n";
  return CLI::Formatter::make_usage(app, std::move(name));
}

std::string HelpFormatter::make_option_desc(const CLI::Option* option) const {
  return wrapped(option->get_description(), kColumns - kNameColumns);
}

std::string HelpFormatter::make_footer(const CLI::App* app) const {
  const std::string footer = app->get_footer();
  return footer.empty() ? footer : wrapped(footer, kColumns) + "\n";
}

}  // namespace devsan::launch
