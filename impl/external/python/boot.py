# SPDX-License-Identifier: Apache-2.0
"""Starts the worker without a file of it: `python -c` gets this text, and the modules come on standard input.

One frame: eight bytes with its length, then a JSON object {name of a module: its text}. It has no answer.
"""

import sys

# First of all: a json.py beside the subject must not stand in for the standard library's.
if sys.path and sys.path[0] == "":
    del sys.path[0]

import importlib
import importlib.abc
import importlib.machinery
import json
import linecache
import os
import traceback


def read(count: int) -> bytes:
    """So many bytes and no more: what follows belongs to the worker."""
    data = bytearray()
    while len(data) < count:
        part = os.read(0, min(count - len(data), 1 << 20))
        if not part:
            os._exit(0)  # nobody wants anything
        data += part
    return bytes(data)


class SentModules(importlib.abc.MetaPathFinder, importlib.abc.ExecutionLoader):
    """Imports what was sent, whatever else is installed under these names."""

    def __init__(self, texts: dict) -> None:
        self.texts = texts
        for name, text in texts.items():  # for tracebacks: no file has these lines
            file = self.get_filename(name)
            linecache.cache[file] = (len(text), None, text.splitlines(True), file)

    def is_package(self, name: str) -> bool:
        return any(other.startswith(name + ".") for other in self.texts)

    def get_filename(self, name: str) -> str:
        top, *inner = name.split(".") + (["__init__"] if self.is_package(name) else [])
        return f"<{top}>/{'/'.join(inner)}.py"

    def get_source(self, name: str) -> str:
        return self.texts[name]

    def find_spec(self, name: str, path: object = None, target: object = None) -> object:
        if name not in self.texts:
            return None
        spec = importlib.machinery.ModuleSpec(name, self, origin=self.get_filename(name), is_package=self.is_package(name))
        spec.has_location = True
        if "." not in name:
            # What else an installed package of this name has can still be imported.
            installed = importlib.machinery.PathFinder.find_spec(name)
            spec.submodule_search_locations += (installed and installed.submodule_search_locations) or []
        return spec


sys.excepthook = traceback.print_exception  # unlike the interpreter's own, it finds these lines
sys.meta_path.insert(0, SentModules(json.loads(read(int.from_bytes(read(8), "little")))))
importlib.import_module("lossgate.worker.__main__").main()
