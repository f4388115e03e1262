"""A part of scripts/wheel: what depends on no torch, in a prefix as an installation has it."""

import re
import shutil
import subprocess

from wheel_tools import LIBRARIES, note

COMMON = ["-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", "-DCMAKE_CXX_FLAGS_RELEASE=-O2 -DNDEBUG", "-DDEVSAN_TESTS=OFF"]


def build_program(root, tools, prefix):
    """The command, with a C++ runtime in it. Unwinding and start-up code are zig's, which fit the old glibc."""
    folder = tools.folder / "program"
    tools.run("cmake", *COMMON, "-S", root, "-B", folder, f"-DCMAKE_C_COMPILER={tools.zig_c}",
              f"-DCMAKE_CXX_COMPILER={tools.zig_cxx}", f"-DCMAKE_ASM_COMPILER={tools.zig_c}",
              f"-DDEVSAN_HEADERS={tools.headers}", "-DDEVSAN_INJECTED=OFF", f"-DCMAKE_INSTALL_PREFIX={prefix}")
    tools.run("cmake", "--build", folder, "--target", "devsan_reference")
    tools.run("cmake", "--install", folder)


def build_injected(root, tools, prefix):
    """The preload and the hooks' archives: by g++, as the hooks of a source installation are, but linked with the
    old glibc's libraries."""
    folder = tools.folder / "injected"
    tools.run("cmake", *COMMON, "-S", root, "-B", folder, "-DDEVSAN_PORTABLE=ON", "-DDEVSAN_PRE_CXX11_ABI=ON",
              f"-DDEVSAN_HEADERS={tools.headers}", f"-DCMAKE_SHARED_LINKER_FLAGS=-L{tools.stubs}",
              f"-DCMAKE_CXX_STANDARD_LIBRARIES={LIBRARIES}",
              *(["-DCMAKE_CXX_COMPILER_LAUNCHER=ccache"] if shutil.which("ccache") else []),
              f"-DCMAKE_INSTALL_PREFIX={prefix}")
    tools.run("cmake", "--build", folder, "--target", "devsan_preload", "devsan_inprocess")
    for part in ("preload", "hooks"):
        tools.run("cmake", "--install", folder / part)


def identity(tools):
    """(version, digest of the sources that `devsan build` compiles): what devsan compares an index with."""
    header = (tools.folder / "program/launch/generated/devsan_version.h").read_text()
    return tuple(re.search(rf'DEVSAN_{name} "([^"]+)"', header)[1] for name in ("VERSION", "SOURCE_ID"))


def build(root, tools):
    prefix = tools.folder / "prefix"
    note("Building the command (zig c++) and the preload")
    shutil.rmtree(prefix, ignore_errors=True)
    build_program(root, tools, prefix)
    build_injected(root, tools, prefix)
    for file in (prefix / "bin/devsan", prefix / "lib/devsan/libdevsan.so"):
        subprocess.run(["strip", file], check=True)
    for archive in prefix.glob("lib/devsan/inprocess/*/*.a"):
        subprocess.run(["strip", "--strip-debug", archive], check=True)
    return prefix
