"""Asks for the verdict on this Python's frames at one place after the other, and with wrong layouts."""

import asyncio
import ctypes
import sys
import threading

library = ctypes.PyDLL(sys.argv[1])
library.check.argtypes = [ctypes.c_int, ctypes.c_long]
RIGHT, WRONG, UNDECIDED = range(3)
MEMBERS = ("current", "instruction", "code", "previous", "exception", "exception_value", "exception_previous")
places = []


def check(place):
    places.append((place, library.check(0, 0)))


def generator(depth):
    if depth:
        yield from generator(depth - 1)
    else:
        check("nested generators")
        yield


def handling():
    try:
        raise KeyError
    except KeyError:
        check("a generator that handles an exception")
        yield
    check("a generator that has handled one")
    yield


async def items():
    check("an asynchronous generator")
    yield
    try:
        raise OSError
    except OSError:
        await asyncio.sleep(0)
        check("an asynchronous generator that handles an exception")
        yield


async def coroutine():
    await asyncio.sleep(0)
    check("a coroutine")
    async for _ in items():
        pass


def leaving():
    try:
        raise ValueError
    finally:
        check("a finally")


def trace(frame, event, argument):
    check("a trace function")
    return trace


def right_places():
    check("a function")
    next(generator(0))
    next(generator(150))
    resumed = handling()
    next(resumed)
    try:
        raise OSError
    except OSError:
        check("an except")
        next(resumed)
    try:
        leaving()
    except ValueError:
        pass
    asyncio.run(coroutine())

    class Body:
        check("a class body")

    exec("check('executed text')")
    next(check("a generator expression") for _ in [0])
    thread = threading.Thread(target=check, args=("a thread",))
    thread.start()
    thread.join()
    sys.settrace(trace)
    check("traced code")
    sys.settrace(None)


def wrong_layouts():
    """With a generator and a handled exception around, so that there is something to get wrong."""
    try:
        raise KeyError
    except KeyError:
        for member in range(len(MEMBERS)):
            accepted = [by for by in range(-64, 257, 8) if by and library.check(member, by) == RIGHT]
            yield MEMBERS[member], accepted


assert library.find() == 1
right_places()
print([place for place, verdict in places if verdict != RIGHT], len(places))
print(dict(wrong_layouts()))
without_gil = ctypes.CDLL(sys.argv[1])
print(without_gil.check(0, 0) == UNDECIDED)
