"""What only a GPU can tell, for scripts/gpu_check: captures, allocators, a Trainer, DeepSpeed, and PyTorch's own checks."""

import collections
import concurrent.futures
import gzip
import json
import os
import re
import shutil
import sys

from gpu_check_programs import without_addresses
from gpu_check_run import ROOT, first_error, last_line, python_has
from gpu_truth_table import Table

GPU_PROGRAMS = ROOT / "tests/gpu_programs"
TABLES = ROOT / "tests/golden/gpu_truth"
DEMO_LINE, DEMO_STEP = 2117, 17
# What the driver writes before a line of its log. It stands within a line where two threads write at once, as NCCL's do.
DRIVER_PREFIX = re.compile(r"^(\[[^\]]*\d[^\]]*\])+|\[\d+:\d+:\d+\.\d+\]\[\d+\]")


def both(check, name, most, *program, env=None):
    """(without devsan, with devsan, the traces' folder) of a program in processes of its own, side by side."""
    out = check.work / "traces" / name
    shutil.rmtree(out, ignore_errors=True)
    env = env or (lambda side: {})
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        plain = pool.submit(check.run, check.plain(*program), most, env=check.environment(**env("plain")))
        traced = pool.submit(check.run, check.traced(out, *program), most, env=check.environment(**env("traced")))
        return plain.result(), traced.result(), out


def difference(plain, traced):
    """Where a run with devsan differs from one without; empty when it does not."""
    names = ("exit status", "output", "errors")
    one, two = ((done.returncode, done.stdout, without_addresses(done.stderr)) for done in (plain, traced))
    return ", ".join(name for name, left, right in zip(names, one, two) if left != right)


def what_is_told(check, out):
    """Of a correct program, in words; empty when all is well."""
    report = check.report(out)
    if not report:
        return ["no report"]
    kinds = [one["kind"] for one in report["findings"] if one["severity"] != "note"]
    return [f"told: {', '.join(kinds)}"] if kinds else []


# ---- CUDA graphs, also those of compiled code and of collectives

def with_driver_log(check, name, most, *program):
    """As both(), with whether the driver too says the same on both sides: (good, words, plain, traced, out)."""
    logs = {side: check.work / f"cuda_{name}_{side}.log" for side in ("plain", "traced")}
    for log in logs.values():
        log.unlink(missing_ok=True)
    plain, traced, out = both(check, name, most, *program, env=lambda side: {"CUDA_LOG_FILE": logs[side]})
    texts = [log.read_text(errors="replace") if log.exists() else "" for log in logs.values()]
    more = added_lines(*texts)
    differs = difference(plain, traced)
    words = [f"differs from without devsan: {differs}"] if differs else ["as without devsan"]
    words += [f"the driver says more: {'; '.join(more[:4])}"] if more else []
    return plain.returncode == 0 and not differs and not more, words, plain, traced, out


def check_graphs(check):
    """Captures end as without devsan, and the driver refuses nothing that it does not refuse the program itself."""
    good, words, plain, traced, _ = with_driver_log(check, "graphs", 90, GPU_PROGRAMS / "cuda_graphs.py")
    failed = [line for line in traced.stdout.splitlines() if "Error: " in line]
    passed = f"{len(traced.stdout.splitlines()) - len(failed)} of {len(plain.stdout.splitlines())} ways of capture pass"
    return good, "; ".join([passed, *words, *failed[:2]])


def check_quiet(check, name, most, *program):
    """A correct program: it does the same, and nothing is found."""
    if check.options.sim:
        return True, "not run: simulated devices have neither triton nor collectives in a graph"
    good, words, plain, _, out = with_driver_log(check, name, most, *program)
    if plain.returncode:
        words = [f"without devsan status {plain.returncode}: {last_line(plain.stderr)}"]
    complaints = what_is_told(check, out)
    return good and not complaints, "; ".join([*words, *complaints, last_line(plain.stdout)])


def check_compiled(check):
    return check_quiet(check, "compiled", 150, GPU_PROGRAMS / "compiled.py")


def check_collectives(check):
    return check_quiet(check, "collectives", 90, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", 1,
                       GPU_PROGRAMS / "distributed.py")


def added_lines(without, with_devsan):
    """Lines of the driver's log that stand there more often with devsan, without their times and numbers of processes."""
    def counted(text):
        lines = (DRIVER_PREFIX.sub("", line.strip()) for line in text.splitlines())
        return collections.Counter(filter(None, lines))

    return sorted((counted(with_devsan) - counted(without)).elements())


# ---- allocators

# What PyTorch counts is what devsan must have seen of the driver: for each allocator, in which of PyTorch's figures.
ALLOCATORS = {
    "native": ("", ("allocations", "frees", "reserved")),
    "expandable segments": ("expandable_segments:True", ("reserved",)),
    "cudaMallocAsync": ("backend:cudaMallocAsync", ("allocated",)),
}
DRIVER_FIGURE = {"allocations": "allocations", "frees": "frees", "reserved": "peak", "allocated": "peak"}


def check_allocators(check):
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        results = list(pool.map(lambda name: check_allocator(check, name), ALLOCATORS))
    told = (f"{name}: {words}" for name, (_, words) in zip(ALLOCATORS, results))
    return all(good for good, _ in results), "; ".join(told)


def check_allocator(check, name):
    setting, compared = ALLOCATORS[name]
    out = check.work / "traces" / f"allocator {name}"
    shutil.rmtree(out, ignore_errors=True)
    done = check.run(check.traced(out, GPU_PROGRAMS / "allocator.py"), 60,
                     env=check.environment(**({"PYTORCH_CUDA_ALLOC_CONF": setting} if setting else {})))
    if done.returncode:
        return False, first_error(done.stderr)
    counted, report = json.loads(last_line(done.stdout)), check.report(out)
    if check.options.sim:
        return True, "no driver to count on simulated devices"
    seen = driver_figures(report)
    pairs = {what: (counted[what], seen[DRIVER_FIGURE[what]]) for what in compared}
    words = ", ".join(f"{what} {ours}" if ours == theirs else f"{what} {theirs} instead of {ours}"
                      for what, (ours, theirs) in pairs.items())
    return all(ours == theirs for ours, theirs in pairs.values()), words


def driver_figures(report):
    """What devsan saw of the driver's device memory. Where a runtime's call has one of the driver inside, one is told."""
    figures = collections.Counter()
    for process in report["run"]["processes"]:
        told = process.get("device_calls") or {"memory": [], "calls": []}
        for call in told["calls"]:
            if call["kind"] in ("allocate", "free") and call.get("space") == "device":
                figures["allocations" if call["kind"] == "allocate" else "frees"] += call["count"]
        figures["peak"] += sum(row["peak"] for row in told["memory"] if row["space"] == "device")
    return figures


# ---- libraries

def check_trainer(check):
    if not python_has(check, "transformers") or not python_has(check, "accelerate"):
        return True, "not run: transformers and accelerate are not installed"
    plain, traced, out = both(check, "trainer", 150, GPU_PROGRAMS / "trainer.py")
    if plain.returncode or traced.returncode:
        return False, f"without devsan status {plain.returncode}, with it {traced.returncode}: {last_line(traced.stderr)}"
    without, with_devsan = (json.loads(last_line(done.stdout)) for done in (plain, traced))
    same = without["losses"] == with_devsan["losses"]
    words = (f"losses {'the same' if same else 'DIFFER'}; {with_devsan['seconds']} s with devsan, "
             f"{without['seconds']} s without")
    complaints = what_is_told(check, out)
    return same and not complaints, "; ".join([words, *complaints])


def check_deepspeed(check):
    if not python_has(check, "deepspeed"):
        return True, "not run: DeepSpeed is not installed"
    environment = check.environment(RANK=0, WORLD_SIZE=1)
    reports = []
    for name, arguments in (("bug", []), ("fixed", ["--fixed"])):
        out = check.work / "traces" / f"deepspeed-{name}"
        shutil.rmtree(out, ignore_errors=True)
        check.run(check.traced(out, ROOT / "scripts/demo_zero3.py", *arguments), 90, env=environment)
        reports.append(check.work / f"deepspeed-{name}.json")
        check.run([check.devsan, "view", out, "--json", reports[-1]], 60)
    done = check.run([sys.executable, ROOT / "scripts/check_demo.py", *reports], 20)
    return done.returncode == 0, last_line(done.stdout if done.returncode == 0 else done.stderr)


# ---- PyTorch's own checks

def committed_table(check):
    """The table of a real GPU for this torch, if there is one: as its author wrote it, or compressed."""
    for path in sorted([*TABLES.glob("*.tsv"), *TABLES.glob("*.tsv.gz")]):
        table = read_table(check, path)
        if table.facts["torch"] == check.results["machine"]["torch"] and not table.facts["simulated"]:
            return table
    return None


def read_table(check, path):
    if path.suffix != ".gz":
        return Table.read(path)
    plain = check.work / path.stem
    plain.write_bytes(gzip.decompress(path.read_bytes()))
    return Table.read(plain)


def check_truth(check):
    """Writes gpu_truth.tsv: the committed table with what it lacked; where there is none, what the time suffices for."""
    known = committed_table(check)
    if known and not known.facts["missing"]:
        return True, f"the table of {known.title()} lacks nothing"
    wanted = ["--ops", "|".join(map(re.escape, known.facts["missing"]))] if known else []
    if check.options.sim:
        wanted = ["--ops", "add|t", "--samples", "1"]
    seconds = check.bounded(check.options.truth_seconds + 15) - 15  # to end by itself, with what it has
    jobs = max(1, min(6, (os.cpu_count() or 2) // 2))
    target = check.out / "gpu_truth.tsv"
    command = [ROOT / "scripts/gpu_truth", "--python", check.options.python, "--jobs", jobs, "--minutes", seconds / 60,
               "--out", target, *wanted]
    done = check.run(check.traced(check.work / "traces/truth", *command) if check.options.sim
                     else [check.options.python, *command], seconds + 15, env=check.environment())
    if not target.exists():
        return False, last_line(done.stderr)
    if known:
        made = Table.read(target)
        missing = [name for name in known.facts["missing"] if name not in made.operators()]
        Table(known.facts | {"missing": missing}, known.outcomes | made.outcomes).write(target)
        added = f"{len(made.operators())} of {len(known.facts['missing'])} operators"
        return not missing, f"{added} added that were not reached before"
    return True, last_line(done.stdout)  # which says how much of it there is


if __name__ == "__main__":
    sys.exit("this file is a part of scripts/gpu_check")
