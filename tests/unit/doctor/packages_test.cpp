#include "doctor/python/packages.h"

#include <catch2/catch.hpp>

#include "../launch/temporary_directory.h"
#include "doctor/python/torch_build.h"

using namespace devsan::doctor;

TEST_CASE("packages are told by the folders of their metadata") {
  devsan::launch::TemporaryDirectory site;
  site.write("accelerate-1.1.0.dist-info/METADATA", "");
  site.write("Ruamel.YAML_clib-0.2.15.dist-info/METADATA", "");
  site.write("old_thing-0.3-py3.11.egg-info/PKG-INFO", "");
  site.write("stray-folder.dist-info/METADATA", "");
  site.write("torch/version.py", "");
  const Packages packages = Packages::read({site.path()});
  CHECK(packages.version("accelerate") == "1.1.0");
  CHECK(packages.version("ruamel-yaml-clib") == "0.2.15");
  CHECK(packages.version("old.thing") == "0.3");
  CHECK(packages.find("stray") == nullptr);
  CHECK(packages.find("torch") == nullptr);
}

TEST_CASE("of two packages of a name the first in the path counts") {
  devsan::launch::TemporaryDirectory first;
  devsan::launch::TemporaryDirectory second;
  first.write("peft-0.4.0.dist-info/METADATA", "");
  second.write("peft-0.3.0.dist-info/METADATA", "");
  CHECK(Packages::read({"/nonexistent", first.path(), second.path()}).version("peft") == "0.4.0");
}

TEST_CASE("exact requirements are read from the metadata, without those of extras") {
  devsan::launch::TemporaryDirectory site;
  site.write("t-1.dist-info/METADATA",
             "Name: t\nRequires-Dist: nvidia-nccl-cu12 (==2.21.5) ; platform_system == \"Linux\"\n"
             "Requires-Dist: nvidia_cudnn_cu12==9.1.0.70; platform_system == \"Linux\"\n"
             "Requires-Dist: sympy>=1.13\nRequires-Dist: opt==1.0; extra == \"opt\"\n"
             "Requires-Dist: cuda-toolkit[cublas]==13.0.2\n\nRequires-Dist: in-the-text==1\n");
  const auto found = exact_requirements(site.path() / "t-1.dist-info");
  CHECK(found == std::map<std::string, std::string>{
                     {"nvidia-nccl-cu12", "2.21.5"}, {"nvidia-cudnn-cu12", "9.1.0.70"}, {"cuda-toolkit", "13.0.2"}});
}

TEST_CASE("the build of torch is read from its files") {
  devsan::launch::TemporaryDirectory site;
  site.write("torch/version.py",
             "from typing import Optional\n__all__ = ['__version__', 'cuda']\n__version__ = '2.11.0+cu130'\n"
             "cuda: Optional[str] = '13.0'\nhip: Optional[str] = None\n");
  site.write("torch/lib/libtorch_python.so", std::string("x\0sm_75 sm_80\0y", 15));
  site.write("torch-2.11.0+cu130.dist-info/METADATA",
             "Requires-Dist: nvidia-nccl-cu13==2.28.9; x\nRequires-Dist: triton==3.6.0\n\n");
  const Packages packages = Packages::read({site.path()});
  const std::optional<TorchBuild> torch = read_torch_build({"/nonexistent", site.path()}, packages);
  REQUIRE(torch);
  CHECK(torch->version == "2.11.0+cu130");
  CHECK(torch->cuda == "13.0");
  CHECK(torch->hip.empty());
  CHECK(torch->architectures == std::vector<std::string>{"sm_75", "sm_80"});
  CHECK(torch->requirements == std::map<std::string, std::string>{{"nvidia-nccl-cu13", "2.28.9"}});
  CHECK_FALSE(read_torch_build({"/nonexistent"}, packages));
}
