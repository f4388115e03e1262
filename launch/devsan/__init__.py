"""What Python programs need of devsan. The sanitizer itself is the command `devsan`.

`allow` and `expect` tell devsan of findings that a program makes on purpose. In a process without devsan they do nothing,
so that they may stay in the program. Importing this package imports neither torch nor anything of devsan's own.
"""

from devsan.contexts import ExpectationError, allow, expect

__all__ = ["ExpectationError", "allow", "expect"]
