#include "launch/target_python.h"

#include <catch2/catch.hpp>

#include "temporary_directory.h"

using namespace devsan::launch;

TEST_CASE("names of Pythons are told from names that only begin alike") {
  for (const char* name : {"python", "python3", "python3.11", "/usr/bin/python3.13t", "pypy3"}) {
    CHECK(is_python_name(name));
  }
  for (const char* name : {"python-config", "pythonw.sh", "ipython", "python3-dbg.conf", "perl", ""}) {
    CHECK_FALSE(is_python_name(name));
  }
}

TEST_CASE("the interpreter of a script is read from its first line") {
  CHECK(python_of_script("#!/usr/bin/python3\nimport x\n") == "/usr/bin/python3");
  CHECK(python_of_script("#! /opt/env/bin/python3.12 -sP\n") == "/opt/env/bin/python3.12");
  CHECK(python_of_script("#!/usr/bin/env python3\n") == "python3");
  CHECK(python_of_script("#!/usr/bin/env -S python3 -u\n") == "python3");
  CHECK(python_of_script("#!/usr/bin/env -S A=1 python\n") == "python");
  CHECK(python_of_script("#!/usr/bin/python3") == "/usr/bin/python3");
  CHECK_FALSE(python_of_script("#!/bin/bash\npython x.py\n"));
  CHECK_FALSE(python_of_script("#!/usr/bin/env bash\n"));
  CHECK_FALSE(python_of_script("#!"));
  CHECK_FALSE(
      python_of_script("\x7f"
                       "ELF"));
  CHECK_FALSE(python_of_script(""));
}

TEST_CASE("the scripts that pip writes for long paths and paths with spaces name their Python in the second line") {
  CHECK(python_of_script("#!/bin/sh\n'''exec' \"/a path/bin/python\" \"$0\" \"$@\"\n' '''\n") == "/a path/bin/python");
  CHECK(python_of_script("#!/bin/sh\n'''exec' /long/bin/python3 \"$0\" \"$@\"\n' '''\n") == "/long/bin/python3");
  CHECK_FALSE(python_of_script("#!/bin/sh\n'''exec' /bin/perl \"$0\" \"$@\"\n"));
}

TEST_CASE("the Python of a command is found as exec would find it") {
  const TemporaryDirectory directory;
  const std::string first = directory.write("one/python3", "", true);
  const std::string other = directory.write("two/python", "", true);
  directory.write("zero/python3", "not executable");
  const std::string torchrun = directory.write("bin/torchrun", "#!" + other + "\n", true);
  directory.write("bin/launch", "#!/usr/bin/env python\n", true);
  directory.write("bin/tool", "#!/bin/sh\n", true);
  directory.write("bin/env", "", true);
  std::string path;
  for (const char* part : {"zero", "one", "two", "bin"}) path += (directory.path() / part).string() + ":";
  const ScopedVariable variable("PATH", path.c_str());

  CHECK(find_python({"python3", "x.py"}) == first);
  CHECK(find_python({other, "x.py"}) == other);
  CHECK(find_python({"torchrun", "x.py"}) == other);
  CHECK(find_python({torchrun}) == other);
  CHECK(find_python({"launch"}) == other);
  CHECK(find_python({"env", "A=1", "-u", "B", "python", "x.py"}) == other);
  CHECK(find_python({"env", "torchrun"}) == other);
  CHECK(find_python({"tool", "60", "python", "x.py"}) == other);
  CHECK(find_python({"tool"}) == first);
  CHECK(find_python({"nosuch"}) == first);
}

TEST_CASE("a machine without Python has none to offer") {
  const TemporaryDirectory directory;
  const ScopedVariable variable("PATH", directory.path().c_str());
  CHECK_FALSE(find_python({"ls"}));
  CHECK_FALSE(find_program(""));
}

TEST_CASE("the Python of a command is certain where nothing else decides it") {
  const TemporaryDirectory directory;
  const std::string python = directory.write("python3", "", true);
  const std::string script = directory.write("torchrun", "#!" + python + "\n", true);
  directory.write("launch", "#!/usr/bin/env python3\n", true);
  directory.write("timeout", "", true);
  directory.write("run.sh", "#!/bin/sh\n", true);
  directory.write("env", "", true);
  const ScopedVariable variable("PATH", directory.path().c_str());

  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"python3", "x.py"}, {python}, {"env", "python3", "x.py"}}) {
    REQUIRE(find_certain_python(command));
    CHECK(find_certain_python(command)->path == python);
    CHECK_FALSE(find_certain_python(command)->by_script);
  }
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"torchrun", "x.py"}, {script}, {"launch"}, {"env", "torchrun"}}) {
    REQUIRE(find_certain_python(command));
    CHECK(find_certain_python(command)->path == python);
    CHECK(find_certain_python(command)->by_script);
  }
  for (const std::vector<std::string>& command : {std::vector<std::string>{"run.sh"},
                                                  {"timeout", "60", "python3", "x.py"},
                                                  {"env", "A=1", "python3"},
                                                  {"env", "-i", "python3"},
                                                  {"launch", "run", "python3", "x.py"},
                                                  {"nothing"},
                                                  {"env"},
                                                  {}}) {
    CHECK_FALSE(find_certain_python(command));
  }
}
