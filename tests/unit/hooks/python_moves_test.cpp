#include "hooks/inprocess/source/python_moves.h"

#include <catch2/catch.hpp>

namespace devsan::hooks {
namespace {

TEST_CASE("A move names a device, and a change of the type is none") {
  CHECK(moves("mask.float().to(self.device)"));
  CHECK(moves("mask.cuda(non_blocking=True)"));
  CHECK(moves("mask.cpu()"));
  CHECK_FALSE(moves("mask.to(torch.float16)"));
  CHECK_FALSE(moves("mask.float()"));
}

TEST_CASE("Another branch moves what a line leaves") {
  const SourceLines either(
      "def batch(self, rows):\n"                   // 1
      "    if self.training:\n"                    // 2
      "        mask = self.all.to(self.device)\n"  // 3
      "    elif rows:\n"                           // 4
      "        mask = self.all[rows]\n"            // 5
      "    else:\n"                                // 6
      "        mask = None\n"                      // 7
      "    return mask\n");                        // 8
  CHECK(moved_in_other_branch(either, 5, "mask") == 3);
  CHECK(moved_in_other_branch(either, 3, "mask") == 0);
  CHECK(moved_in_other_branch(either, 5, "rows") == 0);
  const SourceLines leaving(
      "def pick(scores, generator):\n"                         // 1
      "    if scores.shape[0] > 1:\n"                          // 2
      "        p = scores.softmax(-1).to(generator.device)\n"  // 3
      "        return draw(p)\n"                               // 4
      "    p = scores.softmax(-1)\n"                           // 5
      "    return draw(p)\n");                                 // 6
  CHECK(moved_in_other_branch(leaving, 5, "p") == 3);
}

TEST_CASE("A statement between two conditions keeps them apart, whatever its first letters are") {
  const SourceLines lines(
      "def batch(self, rows):\n"
      "    if self.training:\n"
      "        mask = self.all.to(self.device)\n"
      "    elements = len(rows)\n"
      "    if elements:\n"
      "        mask = self.all[rows]\n"
      "    else:\n"
      "        mask = None\n"
      "    return mask\n");
  CHECK(moved_in_other_branch(lines, 6, "mask") == 0);
  CHECK(moved_in_other_branch(lines, 8, "mask") == 0);
}

TEST_CASE("What a later line moves is no other branch") {
  const SourceLines lines(
      "def batch(self, rows):\n"               // 1
      "    mask = self.all[rows]\n"            // 2
      "    if self.training:\n"                // 3
      "        mask = mask.to(self.device)\n"  // 4
      "    return mask\n");                    // 5
  CHECK(moved_in_other_branch(lines, 2, "mask") == 0);
}

TEST_CASE("An argument is computed with, and others are moved") {
  const SourceLines lines(
      "def ready(self, x, y, w=None, n=1):\n"                         // 1
      "    x, y = x.to(self.device), y.to(self.device)\n"             // 2
      "    w = w.float() if w is not None else torch.ones_like(y)\n"  // 3
      "    z = x + w\n"                                               // 4
      "    return x, y, w\n");                                        // 5
  const Unmoved told = moved_beside(lines, 3, "w", "w.float() if w is not None else torch.ones_like(y)");
  CHECK(told.argument == "w");
  CHECK(told.line == 2);
  CHECK(moved_beside(lines, 4, "z", "x + w").line == 0);
  CHECK(moved_beside(lines, 4, "z", "self.table + 1").line == 0);
  CHECK(moved_beside(lines, 4, "z", "n * 2").argument == "n");
  const SourceLines none(
      "def ready(self, x, w):\n"
      "    w = w.float()\n"
      "    return x, w\n");
  CHECK(moved_beside(none, 2, "w", "w.float()").line == 0);
}

TEST_CASE("Of what a loop gives, what it only computes with comes beside what it moves") {
  const SourceLines lines(
      "for words, tags in loader:\n"     // 1
      "    words = words.to(device)\n"   // 2
      "    tags = tags.long()\n"         // 3
      "    rows = other.long()\n"        // 4
      "    loss = model(words, tags)\n"  // 5
      "tags = tags.float()\n");          // 6
  const Unmoved tags = moved_beside(lines, 3, "tags", "tags.long()");
  CHECK(tags.line == 2);
  CHECK(tags.argument == "tags");
  CHECK(moved_beside(lines, 4, "rows", "other.long()").line == 0);
  CHECK(moved_beside(lines, 6, "tags", "tags.float()").line == 0);
}

}  // namespace
}  // namespace devsan::hooks
