#include "hooks/inprocess/source/traceback_text.h"

#include <catch2/catch.hpp>

namespace devsan::hooks {
namespace {

TEST_CASE("Of a worker's traceback the exception and the innermost line of the program are found") {
  const auto found = traceback_in(
      "Caught KeyError in DataLoader worker process 1.\n"
      "Original Traceback (most recent call last):\n"
      "  File \"/venv/lib/python3.11/site-packages/torch/utils/data/_utils/worker.py\", line 361, in _worker_loop\n"
      "    data = fetcher.fetch(index)\n"
      "           ^^^^^^^^^^^^^^^^^^^^\n"
      "  File \"/srv/data.py\", line 26, in __getitem__\n"
      "    raise KeyError(\"no image 40\")\n"
      "  File \"/venv/lib/python3.11/site-packages/images/read.py\", line 5, in read\n"
      "KeyError: 'no image 40'\n");
  REQUIRE(found);
  CHECK(found->heading == "Caught KeyError in DataLoader worker process 1");
  CHECK(found->exception == "KeyError: 'no image 40'");
  CHECK(found->file == "/srv/data.py");
  CHECK(found->line == "26");
  CHECK(found->function == "__getitem__");
}

TEST_CASE("What a person typed at a prompt is a line of the program") {
  const auto found = traceback_in(
      "Caught it.\nOriginal Traceback (most recent call last):\n"
      "  File \"<stdin>\", line 3, in __getitem__\n"
      "  File \"/usr/lib/python3.11/random.py\", line 5, in choice\n"
      "IndexError: empty\n");
  REQUIRE(found);
  CHECK(found->file == "<stdin>");
}

TEST_CASE("An exception that came of another is the one that is told") {
  const auto found = traceback_in(
      "\n\n-- Process 0 terminated with the following error:\n"
      "Traceback (most recent call last):\n"
      "  File \"/srv/a.py\", line 1, in first\n"
      "KeyError: 'a'\n\n"
      "During handling of the above exception, another exception occurred:\n\n"
      "Traceback (most recent call last):\n"
      "  File \"/srv/b.py\", line 2, in second\n"
      "ValueError: no more\nand a second line\n");
  REQUIRE(found);
  CHECK(found->heading == "Process 0 terminated with the following error");
  CHECK(found->exception == "ValueError: no more");
  CHECK(found->file == "/srv/b.py");
}

TEST_CASE("A text without a traceback, and one that is cut off, tell no more than they have") {
  CHECK_FALSE(traceback_in("no more data"));
  const auto found = traceback_in("Caught it.\nOriginal Traceback (most recent call last):\n  File \"/srv/a.py\", li");
  REQUIRE(found);
  CHECK(found->file.empty());
  CHECK(found->exception.empty());
}

}  // namespace
}  // namespace devsan::hooks
