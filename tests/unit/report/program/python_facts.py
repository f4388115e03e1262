"""What CPython itself says about source files, for corpus_test.cpp.

    python_facts.py ONE_IN_N [FOLDER ...]

Prints a spread of the files below the folders, or else of the standard library and of torch, in a line each:
    F PATH                                  a file that CPython can compile
    N KIND LINE END_LINE COLUMN END_COLUMN  an expression of it
    S KIND LINE NAME LOCAL,LOCAL,...        a scope of it, and the names that are local to it
    E PATH                                  a file that it cannot compile
"""

import ast
import hashlib
import importlib.util
import pathlib
import symtable
import sys
import sysconfig
import warnings

KINDS = (ast.Call, ast.Attribute, ast.Subscript, ast.BinOp, ast.Name, ast.Compare, ast.BoolOp, ast.Lambda, ast.Constant)


def usual_folders():
    torch = importlib.util.find_spec("torch")
    return [sysconfig.get_paths()["stdlib"], *(torch.submodule_search_locations if torch else [])]


def files(one_in, folders):
    for folder in folders:
        for path in sorted(pathlib.Path(folder).rglob("*.py")):
            below = path.relative_to(folder)
            digest = hashlib.sha256(str(below).encode()).digest()
            if "site-packages" not in below.parts and int.from_bytes(digest[:4], "big") % one_in == 0 and "\n" not in str(path):
                yield path


def inside_strings(tree):
    """Expressions in f-strings: before 3.12 their columns are wrong."""
    return {id(node) for string in ast.walk(tree) if isinstance(string, ast.JoinedStr) for node in ast.walk(string)}


def print_expressions(tree):
    left_out = inside_strings(tree)
    for node in ast.walk(tree):
        if isinstance(node, KINDS) and id(node) not in left_out:
            print("N", type(node).__name__, node.lineno, node.end_lineno, node.col_offset, node.end_col_offset)


def print_scopes(table):
    # Class-private names are mangled in the table, and `.0` is the interpreter's own.
    names = sorted({symbol.get_name() for symbol in table.get_symbols() if symbol.is_local()
                    and not symbol.get_name().startswith(".") and "__" not in symbol.get_name()})
    print("S", table.get_type(), table.get_lineno(), table.get_name(), ",".join(names))
    for child in table.get_children():
        print_scopes(child)


def main():
    warnings.simplefilter("ignore")
    for path in files(int(sys.argv[1]), sys.argv[2:] or usual_folders()):
        try:
            text = path.read_bytes()
            text.decode()
            tree = ast.parse(text)
            table = symtable.symtable(text.decode("utf-8-sig"), str(path), "exec")
        except (SyntaxError, ValueError, RecursionError):
            print("E", path)
            continue
        print("F", path)
        print_expressions(tree)
        print_scopes(table)


if __name__ == "__main__":
    main()
