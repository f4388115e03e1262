#include "report/fixes/patch.h"

#include <catch2/catch.hpp>

#include "patched.h"

namespace devsan::report::fixes {
namespace {

TEST_CASE("A patch is a unified diff of the file, with a sentence") {
  const Patched patch = patched({"import torch\nscale = torch.ones(3)  #!c\ny = x * scale  #?\n"});
  CHECK(patch.diff.starts_with("--- /p.py\n+++ /p.py\n@@ -1,3 +1,3 @@\n"));
  CHECK(patch.diff.find("\n-scale = torch.ones(3)  #!c\n+scale = torch.ones(3, device='cuda:0')  #!c\n") !=
        std::string::npos);
  CHECK(patch.text == "Give `torch.ones` the device: `device='cuda:0'`");
}

TEST_CASE("A file that does not parse has no patch") {
  CHECK(patched({"import torch\nscale = torch.ones(3)  #!c\ny = x * scale  #?\nif (:\n"}).diff.empty());
}

TEST_CASE("An operand on the host that no other operand is beside is moved nowhere") {
  Finding finding;
  finding.operands.resize(1);
  finding.operands[0].device = "cpu";
  const Sources sources;
  slice::Codebase codebase(sources);
  const slice::Code code(codebase, finding);
  CHECK_FALSE(patch_for(finding, ranking::Candidate(), code));
}

TEST_CASE("A process that kept no text of the file has no patch") {
  Finding finding;
  finding.where.emplace();
  finding.where->file = "/gone.py";
  const Sources sources{{"/gone.py", SourceText()}};
  slice::Codebase codebase(sources);
  const slice::Code code(codebase, finding);
  CHECK(code.empty());
  CHECK(slice::slice_of(finding, code).empty());
}

}  // namespace
}  // namespace devsan::report::fixes
