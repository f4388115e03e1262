#include "rules/rules_file.h"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <fstream>

#include "trace/compiled_rules.h"

using namespace devsan::rules;
namespace fs = std::filesystem;

namespace {

class Folder {
 public:
  Folder() : path_(fs::temp_directory_path() / ("devsan-rules-" + std::to_string(getpid()))) {
    fs::create_directories(path_);
  }
  ~Folder() { fs::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  RulesFile read(const std::string& text, const std::string& name = "rules.toml") {
    write(name, text);
    return read_rules(path_ / name);
  }
  void write(const std::string& name, const std::string& text) { std::ofstream(path_ / name) << text; }

 private:
  fs::path path_;
};

// The one complaint, without the folder.
std::string complaint(const RulesFile& file) {
  REQUIRE(file.complaints.size() == 1);
  const std::string text = file.complaints[0].sentence();
  return text.substr(text.rfind('/', text.find(".toml")) + 1);
}

}  // namespace

TEST_CASE("rules are sentences, with whom they are about") {
  Folder folder;
  const RulesFile file = folder.read(R"(
off = ["average-beside-model"]
expect = ["experts.{0-3} on cuda:1", "no host sync in phase forward"]

[[rule]]
name = "offloaded"
expect = ["*.flat[*] on cpu pinned", "optimizer state on cpu"]
ranks = [0, "2-3"]
steps = "10-"
)");
  REQUIRE(file.complaints.empty());
  REQUIRE(file.rules.size() == 4);
  const auto offloaded = std::ranges::find(file.rules, "optimizer state on cpu", &Rule::sentence);
  REQUIRE(offloaded != file.rules.end());
  CHECK(offloaded->name == "offloaded");
  CHECK(offloaded->line == 7);
  CHECK(format_spans(offloaded->ranks) == "0, 2-3");
  CHECK(file.off == std::vector<std::string>{"average-beside-model"});
}

TEST_CASE("a mistake is told by line and column, with what may have been meant") {
  Folder folder;
  CHECK(complaint(folder.read("expect = [\n  \"experts on cdua\",\n]\n")) ==
        "rules.toml:2:15: 'cdua' is no device such as cpu or cuda:1; did you mean cuda?");
  CHECK(complaint(folder.read("[[rule]]\nexpct = \"a on cpu\"\nexpect = \"a on cpu\"\n"))
            .find("rules.toml:2:1: unknown key 'expct'; did you mean expect?") == 0);
  CHECK(complaint(folder.read("off = \"average-beside-mode\"")).find("did you mean average-beside-model?") !=
        std::string::npos);
  CHECK(complaint(folder.read("expect = [ \"a on cpu\"")).find("rules.toml:1:") == 0);
  CHECK(complaint(folder.read("[rule]\nexpect = \"a on cpu\"")).find("[[rule]]") != std::string::npos);
  CHECK(complaint(folder.read("[[rule]]\nname = \"x\"")).find("it has no 'expect'") != std::string::npos);
  CHECK(complaint(folder.read("[[rule]]\nexpect = \"a on cpu\"\nranks = \"3-1\"")).find("rules.toml:3:9: ") == 0);
  CHECK(complaint(folder.read("expect = 3")).find("a text, or a list of texts") != std::string::npos);
}

TEST_CASE("a column is that of the file, whatever escapes and characters stand before it") {
  Folder folder;
  const auto column = [&](const std::string& line) {
    const RulesFile file = folder.read(line);
    REQUIRE(file.complaints.size() == 1);
    return file.complaints[0].column;
  };
  CHECK(column("expect = \"a on cdua\"") == 16);
  CHECK(column("expect = \"a\\ton cdua\"") == 17);
  CHECK(column("expect = \"\\u00e4 on cdua\"") == 21);
  CHECK(column("expect = \"\u00e4 on cdua\"") == 16);
  CHECK(column("expect = '\u00e4 on cdua'") == 16);
  CHECK(column("expect = [\"\u00e4 on cpu\", \"a on cdua\"]") == 29);
}

TEST_CASE("conditions may have thousands of numbers, and no more") {
  Folder folder;
  const auto ranks = [](int count) {
    std::string text;
    for (int k = 0; k < count; ++k) text += (k > 0 ? ", " : "") + std::to_string(8 * k);
    return text;
  };
  const std::string rule = "[[rule]]\nexpect = \"a on cpu\"\nranks = ";
  const RulesFile file = folder.read(rule + "\"" + ranks(128) + "\"");
  REQUIRE(file.complaints.empty());
  const auto compiled_rule = rule_of_line("r.toml", 1, compiled_line(file.rules[0]));
  REQUIRE(compiled_rule);
  CHECK(holds(compiled_rule->ranks, 1016));
  CHECK(complaint(folder.read(rule + "[" + ranks(3000) + "]")).find("rules.toml:3:9: more than 2000") == 0);
  CHECK(complaint(folder.read(rule + "\"" + ranks(3000) + "\"")).find("rules.toml:3:9: more than 2000") == 0);
}

TEST_CASE("what is not known of activations is no condition of theirs") {
  Folder folder;
  CHECK(complaint(folder.read("[[rule]]\nsteps = \"1-\"\nexpect = \"activations of a on cpu\""))
            .find("rules.toml:3:10: no step is known of activations") == 0);
  CHECK(complaint(folder.read("expect = \"activations of a on cpu pinned\"")).find("pinned is not known") !=
        std::string::npos);
}

TEST_CASE("files include each other, but not in a circle") {
  Folder folder;
  folder.write("common.toml", "expect = \"a on cpu\"\n");
  const RulesFile file = folder.read("include = \"common.toml\"\nexpect = \"b on cpu\"\n");
  CHECK(file.complaints.empty());
  CHECK(file.rules.size() == 2);
  folder.write("one.toml", "include = \"two.toml\"\n");
  CHECK(complaint(folder.read("include = \"one.toml\"\n", "two.toml")).find("includes itself") != std::string::npos);
  CHECK(complaint(folder.read("include = \"none.toml\"\n")) == "rules.toml:1:11: none.toml: no such file");
}

TEST_CASE("what is no file of rules is one clear line") {
  Folder folder;
  CHECK(complaint(folder.read(std::string(2 << 20, '#'))) == "rules.toml: is larger than 1024 KiB");
  CHECK(folder
            .read(std::string("\x7f"
                              "ELF\x02\x01\0\0",
                              8))
            .complaints.size() == 1);
  CHECK(folder.read("{\"json\": true}").complaints.size() == 1);
  CHECK(read_rules("/nowhere/rules.toml").complaints[0].sentence() == "/nowhere/rules.toml: no such file");
}

TEST_CASE("the compiled form holds all rules, each with its line") {
  Folder folder;
  const std::string text = compiled(folder.read("off = \"all\"\nexpect = [\n\"a on cpu\",\n\"b on cuda\"]"), "/r.toml");
  REQUIRE(text.starts_with(std::string(devsan::trace::kCompiledRulesMark) + "/r.toml\n"));
  std::vector<std::string> lines;
  devsan::trace::for_each_compiled_rule(
      std::string_view(text).substr(text.find('\n') + 1),
      [&](int line, std::string_view rule) { lines.push_back(std::to_string(line) + ": " + std::string(rule)); });
  CHECK(lines ==
        std::vector<std::string>{"0: off\tall", "3: rule\ta on cpu\ta on cpu", "4: rule\tb on cuda\tb on cuda"});
}
