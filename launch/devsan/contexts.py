"""`devsan.allow` and `devsan.expect`: stretches of a program in which findings are made on purpose."""

import functools
import inspect
import threading

ANY = "any"


class ExpectationError(AssertionError):
    """Nothing of what `devsan.expect` names was found."""


@functools.cache
def _library():
    """The functions of the libdevsan.so in this process; None without devsan."""
    try:
        import ctypes

        library = ctypes.PyDLL(None)
        library.devsan_scope_kind.argtypes = [ctypes.c_char_p]
        library.devsan_scope_open.argtypes = [ctypes.c_uint32, ctypes.c_int]
        library.devsan_scope_open.restype = ctypes.c_void_p
        library.devsan_scope_close.argtypes = [ctypes.c_void_p]
        library.devsan_scope_close.restype = ctypes.c_long
    except (ImportError, OSError, AttributeError, TypeError):
        return None
    return library


def _bits(library, kinds):
    """A bit for each of the kinds, by the numbers that the library gives them."""
    bits = 0
    for kind in kinds:
        number = library.devsan_scope_kind(kind.encode())
        if number < 0 and kind != ANY:
            raise ValueError(f"devsan: unknown kind of finding {kind!r}")
        bits |= 0xFFFFFFFF if kind == ANY else 1 << number
    return bits


class _Scope:
    """A context manager and a decorator. One object may be entered several times: one time inside another, and by
    several threads."""

    _expects = False

    def __init__(self, *kinds):
        if not kinds or not all(isinstance(kind, str) for kind in kinds):
            raise TypeError(f"devsan.{type(self).__name__} takes names of kinds of findings, such as 'device-mismatch'")
        self.kinds = kinds
        self.count = 0  # findings made in it; set when it is left
        self._open = []  # the thread that entered, and its scope

    def __enter__(self):
        library = _library()
        scope = library.devsan_scope_open(_bits(library, self.kinds), self._expects) if library else None
        self._open.append((threading.get_ident(), scope))
        return self

    def _newest(self):
        """The index of what this thread entered last; of what anyone did, where another thread leaves for it."""
        own = [index for index, (thread, _) in enumerate(self._open) if thread == threading.get_ident()]
        return own[-1] if own else -1

    def __exit__(self, kind, error, traceback):
        _, scope = self._open.pop(self._newest())
        if scope is None:
            return
        count = _library().devsan_scope_close(scope)
        self.count = max(count, 0)
        # An exception on its way is the program's own affair, and -1 says that devsan was not at work.
        if self._expects and count == 0 and error is None:
            raise ExpectationError(f"devsan found none of the expected kinds: {', '.join(self.kinds)}")

    def __call__(self, function):
        if any(test(function) for test in (inspect.iscoroutinefunction, inspect.isgeneratorfunction,
                                           inspect.isasyncgenfunction)):
            # Calling one of these runs nothing of it yet: the scope would be over before it begins.
            raise TypeError(f"devsan.{type(self).__name__} decorates plain functions; use `with` in {function.__name__}")

        @functools.wraps(function)
        def in_scope(*args, **kwargs):
            with type(self)(*self.kinds):
                return function(*args, **kwargs)

        return in_scope


class allow(_Scope):
    """Findings of these kinds that this thread makes inside are counted, and not told of."""


class expect(_Scope):
    """The same; without any of them an ExpectationError is raised at the end."""

    _expects = True
