"""`torchrun --logs-specs=devsan`: every worker runs with devsan in it, torchrun itself does not."""

import os
import pathlib
import shutil
import subprocess
import sys
import time

from torch.distributed.elastic.multiprocessing.api import DefaultLogsSpecs


def find_command():
    """The command `devsan`: that of this Python's environment, or else the one in PATH."""
    beside = pathlib.Path(sys.executable).parent / "devsan"
    return str(beside) if os.access(beside, os.X_OK) else shutil.which("devsan")


def ask(*arguments):
    """What `devsan ARGUMENTS` prints; None where it cannot be run or fails, which it says itself on stderr."""
    command = find_command()
    if command is None:
        print("devsan: the devsan command is neither next to this Python nor in PATH; workers run without devsan",
              file=sys.stderr)
        return None
    done = subprocess.run([command, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    return os.fsdecode(done.stdout).strip() if done.returncode == 0 else None


def preload(existing, library):
    """LD_PRELOAD with `library` first; an entry for it that is there already moves."""
    others = [entry for entry in existing.replace(":", " ").split() if entry != library]
    return ":".join([library, *others])


def completed(options):
    """DEVSAN_OPTIONS with a directory for the traces and a name for the run, so that all workers share them."""
    keys = [pair.partition("=")[0] for pair in options.split(":")]
    name = f"{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}"
    added = []
    if "out" not in keys:
        directory = os.path.abspath(f"devsan-out/{name}")
        escaped = directory.replace("\\", "\\\\").replace('"', '\\"')
        added.append(f'out="{escaped}"')
    if "run" not in keys:
        added.append(f"run={name}-{os.urandom(4).hex()}")
    return ":".join([*filter(None, [options]), *added])


class TracedLogsSpecs(DefaultLogsSpecs):
    """torchrun's own logs, and devsan in the environment of each worker."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self._added = None

    def _additions(self):
        """The variables to add. Hooks are built here, once, rather than by every worker's first operator."""
        library = ask("lib")
        if library is None:
            return {}
        ask("build", "--python", sys.executable)
        return {
            "LD_PRELOAD": preload(os.environ.get("LD_PRELOAD", ""), library),
            "DEVSAN_OPTIONS": completed(os.environ.get("DEVSAN_OPTIONS", "")),
        }

    def reify(self, envs):
        destinations = super().reify(envs)
        if self._added is None:  # a restart of the workers goes on in the same directory
            self._added = self._additions()
        for env in envs.values():
            env.update(self._added)
        return destinations
