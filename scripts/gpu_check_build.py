"""How scripts/gpu_check comes to devsan on a machine that has little: a pack made elsewhere, and a compiler if need be.

The pack holds the installed program and preloaded library, the sources of the hooks, hooks compiled for a given torch,
and, for a machine on which none of this runs, the header-only dependencies and the compiler's commands as CMake made them.
"""

import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile

from gpu_check_run import ROOT, first_error, last_line

PACK = ROOT / "build/gpu_check/pack.tar.gz"
MOST_PACKED = 40 << 20
RELEASE = ROOT / "build/release"
COMMANDS = ROOT / "build/gpu_check/commands"
INSTALLED = ROOT / ".venv"
TREE_SITTER = ROOT / "build/tree-sitter"
DEPENDENCIES = ("CLI", "nlohmann", "spdlog", "fmt")


# ---- making a pack

def pack(options):
    """Writes the pack; ends the process with a message when it cannot."""
    if not (RELEASE / "build.ninja").exists() or not (INSTALLED / "bin/devsan").exists():
        sys.exit("gpu_check: there is nothing to pack; call scripts/setup first.")
    options.pack_file.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="pack.", dir=options.pack_file.parent) as scratch:
        folder = pathlib.Path(scratch) / "pack"
        commands = pack_commands(folder)
        pack_installed(folder)
        hooks = pack_hooks(folder, options) if options.torch else "no hooks: name a torch with --torch"
        with tarfile.open(options.pack_file, "w:gz", compresslevel=6) as archive:
            archive.add(folder, "pack")
    size = options.pack_file.stat().st_size
    print(f"{options.pack_file}: {size / (1 << 20):.1f} MiB; {hooks}; {commands} commands to compile with")
    return 0 if size <= MOST_PACKED else f"gpu_check: the pack is larger than {MOST_PACKED >> 20} MiB"


def pack_commands(folder):
    for name in DEPENDENCIES:
        shutil.copytree(pathlib.Path("/usr/include") / name, folder / "include" / name)
    shutil.copytree(TREE_SITTER, folder / "tree-sitter", ignore=shutil.ignore_patterns("sdists"))
    shutil.copy(RELEASE / "launch/generated/devsan_version.h", folder / "include/devsan_version.h")
    # A unit of several sources names them by their paths on this machine, so each is compiled on its own.
    configure = ["cmake", "--preset", "release", "-B", COMMANDS, "-DDEVSAN_TESTS=OFF", "-DDEVSAN_UNITY=OFF"]
    subprocess.run(configure, cwd=ROOT, stdout=subprocess.DEVNULL, check=True)
    ninja = ["ninja", "-C", COMMANDS, "-t", "commands", "devsan", "devsan_preload"]
    lines = subprocess.run(ninja, capture_output=True, text=True, check=True).stdout.splitlines()
    compiler = re.search(r"^CMAKE_CXX_COMPILER:\w+=(.+)$", (COMMANDS / "CMakeCache.txt").read_text(), re.M)[1]
    commands = [portable(line, compiler) for line in lines if "/cmake -D" not in line]
    (folder / "commands.json").write_text(json.dumps(commands, indent=1) + "\n")
    return len(commands)


def portable(command, compiler):
    """A command of the build here as one for any folder and any machine with g++."""
    command = command.replace(str(COMMANDS), "@BUILD@").replace(str(TREE_SITTER), "@PACK@/tree-sitter")
    command = command.replace(str(ROOT), "@ROOT@")
    command = command.replace("/usr/bin/cmake -E rm", "rm").replace(compiler, "g++")
    command = re.sub(r"/usr/bin/(?:gcc-)?(ar|ranlib)\b(?:-\d+)?", r"\1", command)
    command = re.sub(r"\s/usr/lib/\S+\.so\S*", "", command)  # fmt: its headers serve as well
    return command.replace("-DFMT_SHARED", "-DFMT_HEADER_ONLY").replace(" -c ", " -isystem @PACK@/include -c ")


def pack_installed(folder):
    """The program and the library without what debuggers read, which is nine tenths of them."""
    for name in ("bin/devsan", "lib/devsan/libdevsan.so"):
        target = folder / "prefix" / name
        target.parent.mkdir(parents=True)
        subprocess.run(["strip", "--strip-debug", "-o", target, INSTALLED / name], check=True)
    shutil.copytree(INSTALLED / "share/devsan", folder / "prefix/share/devsan",
                    ignore=shutil.ignore_patterns("__pycache__"))


def pack_hooks(folder, options):
    """Compiles the hooks for the torch in a wheel's folder, which need not be one that Python here could import."""
    if not (options.torch / "torch/lib/libtorch_cpu.so").exists():
        sys.exit(f"gpu_check: {options.torch} holds no torch/lib/libtorch_cpu.so; "
                 "--torch wants the folder of an unpacked wheel")
    environment = {**os.environ, "PYTHONPATH": str(options.torch.resolve())}
    done = subprocess.run([folder / "prefix/bin/devsan", "build", "--sim", "--python", options.python], env=environment,
                          stdout=subprocess.PIPE, text=True, cwd="/")
    if done.returncode:
        sys.exit("gpu_check: the hooks could not be compiled")
    built = pathlib.Path(last_line(done.stdout))
    shutil.copytree(built, folder / "cache/devsan" / built.name)
    return f"hooks {built.name}"


# ---- using it

def unpack(check):
    """The pack's folder on this machine; None where none was taken along."""
    folder = check.work / "pack"
    shutil.rmtree(folder, ignore_errors=True)
    if not check.options.pack_file.exists():
        return None
    with tarfile.open(check.options.pack_file) as archive:
        archive.extractall(check.work, filter="data")
    return folder


def install(check):
    """Puts the program into work/prefix: the packed one where it runs, else one compiled here."""
    folder = unpack(check)
    shutil.rmtree(check.work / "prefix", ignore_errors=True)
    how = "as packed"
    if folder:
        shutil.copytree(folder / "prefix", check.work / "prefix")
        take_cache(folder, check.work / "cache/devsan")
        if check.run([check.devsan, "--version"], 20).returncode:
            how = "compiled here"
            take_built(check, build_here(check, folder))
    else:
        how = "built here"
        build_with_cmake(check)
    done = check.run([check.devsan, "--version"], 20)
    return done.returncode == 0, f"{done.stdout.splitlines()[0]}, {how}" if done.returncode == 0 else first_error(done.stderr)


def take_cache(folder, cache):
    """Hooks that were compiled elsewhere serve here when libtorch is the same, which their folder's name tells."""
    for hooks in (folder / "cache/devsan").glob("*"):
        shutil.copytree(hooks, cache / hooks.name, dirs_exist_ok=True)
    if cache.exists():  # one that others may write to would be refused
        for path in [cache, *cache.iterdir()]:
            path.chmod(0o700)


def build_hooks(check):
    done = check.run([check.devsan, "build", "--sim", "--python", check.options.python], 300, env=check.environment())
    if done.returncode:
        return False, last_line(done.stderr)
    compiled = [line for line in done.stderr.splitlines() if "built the hooks" in line]
    return True, compiled[0] if compiled else "taken from the cache"


def run_all(check, commands, folder):
    """Runs shell commands side by side; raises with the first error of the first that failed."""

    def one(command):
        return check.run(["bash", "-c", f"cd '{folder}' && {command}"], 240)

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for done in pool.map(one, commands):
            if done.returncode:
                raise RuntimeError(first_error(done.stderr))


def build_here(check, folder):
    """Replays the packed commands, in their order where it matters: objects first, then archives and links."""
    build = check.work / "objects"
    shutil.rmtree(build, ignore_errors=True)
    texts = [text.replace("@BUILD@", str(build)).replace("@ROOT@", str(ROOT)).replace("@PACK@", str(folder))
             for text in json.loads((folder / "commands.json").read_text())]
    for text in texts:
        for output in re.findall(r" -o (\S+)| qc (\S+)", text):
            (build / "".join(output)).parent.mkdir(parents=True, exist_ok=True)
    run_all(check, [text for text in texts if " -c " in text], build)
    for text in texts:
        if " -c " not in text:
            run_all(check, [text], build)
    return build


def take_built(check, build):
    for name, target in (("devsan", "bin"), ("libdevsan.so", "lib/devsan")):
        made = [path for path in build.rglob(name) if path.is_file()]
        shutil.copy(made[0], check.work / "prefix" / target)


def build_with_cmake(check):
    build = check.work / "cmake"
    configure = (f"cmake -S '{ROOT}' -B '{build}' -DCMAKE_BUILD_TYPE=RelWithDebInfo -DDEVSAN_TESTS=OFF -DDEVSAN_UNITY=ON "
                 f"-DCMAKE_INSTALL_PREFIX='{check.work / 'prefix'}'")
    run_all(check, [f"{configure} && cmake --build '{build}' -j{os.cpu_count()} && cmake --install '{build}'"], ROOT)
