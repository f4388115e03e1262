"""A pseudo-terminal with a program on it."""

import os
import pty
import select


class Terminal:
    """A program that leads a session on a terminal of its own."""

    def __init__(self, command, environment, cwd):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(cwd)
            os.execvpe(command[0], [str(word) for word in command], environment)
        self.seen = b""

    def expect(self, text):
        """Reads until `text` has come, and returns what came up to it."""
        while text not in self.seen:
            assert select.select([self.fd], [], [], 60)[0], f"no {text!r} in {self.seen!r}"
            try:
                self.seen += os.read(self.fd, 4096)
            except OSError:
                raise AssertionError(f"the terminal was closed before {text!r}: {self.seen!r}") from None
        before, _, self.seen = self.seen.partition(text)
        return before

    def type(self, text):
        os.write(self.fd, text)

    def end(self):
        status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        os.close(self.fd)
        return status
