# SPDX-License-Identifier: Apache-2.0
"""From the text of an entry to the object that it names."""

from __future__ import annotations

import importlib
import importlib.util
import os
import re
import sys
import traceback
from typing import Any

from lossgate.worker.trouble import Trouble


def _walk(start: Any, dotted: str, where: str) -> Any:
    for part in dotted.split("."):
        if not hasattr(start, part):
            names = [name for name in vars(start) if not name.startswith("_")] if hasattr(start, "__dict__") else []
            names = [name for name in names if callable(getattr(start, name, None))]
            raise Trouble(f"{where} has no {part!r}; it has {', '.join(names[:12]) or 'nothing to call'}")
        start = getattr(start, part)
    return start


def _raised_at(error: BaseException) -> str:
    """The innermost line of what was imported, neither of the import machinery nor of ours."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__)
              if frame.filename != __file__ and not frame.filename.startswith("<") and
              os.path.basename(os.path.dirname(frame.filename)) != "importlib"]
    if not frames:
        return ""
    last = frames[-1]
    return f" at {os.path.basename(last.filename)}:{last.lineno}: {last.line}" if last.line else ""


def _import_error(what: str, error: BaseException) -> Trouble:
    text = f"importing {what} failed: {type(error).__name__}: {error}{_raised_at(error)}"
    if isinstance(error, ModuleNotFoundError):
        text += "; install it in this interpreter, or add its folder to path"
    elif "relative import" in str(error):
        text += ("; it is part of a package: name it PACKAGE.MODULE:FUNCTION, in a lossgate.toml with py: before it, "
                 "and put the package's folder on path")
    return Trouble(text)


_executed: dict = {}  # path and what it looked like, to the module


def _execute(place: str, file: str, paths: list[str]) -> Any:
    """The module in a file. The subjects of one file share it, as long as nobody has written into the file."""
    state = os.stat(file)
    key = (file, state.st_mtime_ns, state.st_size)
    if key in _executed:
        return _executed[key]
    if os.path.dirname(file) not in sys.path:
        sys.path.insert(len(paths), os.path.dirname(file))
    stem = os.path.splitext(os.path.basename(file))[0]
    if stem in sys.modules or stem in getattr(sys, "stdlib_module_names", ()) or not stem.isidentifier():
        stem = f"brought_{re.sub(r'[^0-9A-Za-z_]', '_', stem)}"  # stands in for nobody's module
    spec = importlib.util.spec_from_file_location(stem, file)
    module = importlib.util.module_from_spec(spec)
    sys.modules[stem] = module  # dataclasses and pickle look there
    try:
        spec.loader.exec_module(module)
    except BaseException as error:
        sys.modules.pop(stem, None)
        raise _import_error(place, error) from None
    _executed[key] = module
    return module


def load(entry: str, paths: list[str]) -> tuple[Any, str, dict]:
    """The object that an entry names, its name, and the versions to report."""
    kind, _, rest = entry.partition(":")
    place, _, name = rest.rpartition(":")
    if kind != "py" or not place or not name:
        raise Trouble(f"entry {entry!r}: write py:FILE.py:NAME or py:PACKAGE.MODULE:NAME")
    versions: dict = {}
    if place.endswith(".py"):
        file = next((path for path in (os.path.join(folder, place) for folder in [*paths, os.curdir])
                     if os.path.isfile(path)), None)
        if file is None:
            raise Trouble(f"there is no file {place} in {os.path.abspath(paths[0] if paths else os.curdir)}")
        module = _execute(place, os.path.abspath(file), paths)
    else:
        try:
            module = importlib.import_module(place)
        except BaseException as error:
            raise _import_error(place, error) from None
        versions = _distribution(place.split(".")[0])
    return _walk(module, name, place), name, versions


def _distribution(package: str) -> dict:
    from importlib import metadata
    try:
        of = getattr(metadata, "packages_distributions", dict)().get(package) or [package]
        return {of[0]: metadata.version(of[0])}
    except Exception:
        version = getattr(sys.modules.get(package), "__version__", None)
        return {package: str(version)} if version else {}
