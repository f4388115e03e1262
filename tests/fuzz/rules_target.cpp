// A file of rules: checked, compiled, and read back as a process's trace carries it.
#include "rules/rules_file.h"
#include "target.h"
#include "trace/compiled_rules.h"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace devsan;
  const std::filesystem::path file = fuzz::write_scratch("rules.toml", {data, size});
  const rules::RulesFile read = rules::read_rules(file);
  for (const rules::Complaint& complaint : read.complaints) {
    fuzz::require(!complaint.sentence().empty(), "a complaint is a sentence");
  }
  rules::compiled(read, file);
  for (const rules::Rule& rule : read.rules) {
    const auto back = rules::rule_of_line(rule.file, rule.line, rules::compiled_line(rule));
    fuzz::require(back && back->sentence == rule.sentence, "a compiled rule says what the rule says");
  }
  return 0;
}
