# SPDX-License-Identifier: Apache-2.0
"""The worker as a process of its own, started as lossgate starts it, and inside a test process."""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
import tempfile
import textwrap
import threading
import unittest
from typing import Any

import torch

import given_conversation as talk
from given_worker import batch, sum_loss
from lossgate.worker.conversation import Worker
from lossgate.worker.serving import serve


class Contained(unittest.TestCase):
    """The worker as a process of its own."""

    def setUp(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def write(self, name: str, text: str) -> str:
        path = os.path.join(self.folder.name, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(textwrap.dedent(text))
        return path

    def start(self, **options: Any) -> talk.Process:
        process = talk.Process(folder=self.folder.name, **options)
        self.addCleanup(process.stop)
        return process

    def test_a_conversation(self) -> None:
        self.write("mine.py", '''
            import gc, sys; assert gc.isenabled()
            from beside import factor
            print("printed while importing")
            def loss(log_prob, mask):
                print("printed while called")
                assert sys.stdin.read() == ""
                if log_prob[0, 0] > 5: sys.exit(3)
                if log_prob[0, 0] > 4: raise KeyboardInterrupt
                return (log_prob * mask).sum() * factor
            ''')
        self.write("beside.py", "factor = 3.0\n")
        self.write("random.py", "raise RuntimeError('not the one of the standard library')\n")
        process = self.start()
        metadata, _ = process.ask(talk.hello("grpo", "py:mine.py:loss", ["."]))
        self.assertEqual((metadata["op"], metadata["file"], metadata["line"], metadata["code"]),
                         ("hello", "mine.py", "5", "def loss(log_prob, mask):"))
        self.assertEqual(json.loads(metadata["versions"])["torch"], torch.__version__)
        for value, kind in ((1.0, "result"), (6.0, "SystemExit"), (4.5, "KeyboardInterrupt"), (2.0, "result")):
            tensors = {**batch(), "log_prob": torch.full((2, 3), value)}
            metadata, reply = process.ask(talk.step("grpo"), tensors)
            self.assertEqual(metadata.get("type", metadata["op"]), kind)
            if kind == "result":
                self.assertEqual(reply["loss"].item(), 15.0 * value)
            else:
                self.assertEqual(metadata["file"], "mine.py")
        status, printed = process.close()
        self.assertEqual(status, 0)
        self.assertIn("printed while importing", printed)
        self.assertIn("printed while called", printed)

    def test_several_subjects_of_one_file(self) -> None:
        self.write("mine.py", '''
            import os
            os.chdir("/")  # paths begin where the worker was started
            print("executed")
            def loss(log_prob, mask): return (log_prob * mask).sum()
            def twice(log_prob, mask): return 2 * (log_prob * mask).sum()
            ''')
        process = self.start()
        for name in ("loss", "twice"):
            process.ask(talk.hello("grpo", f"py:mine.py:{name}", ["."], subject=name))

        def loss_of(subject: str) -> float:
            return process.ask(talk.step("grpo", subject=subject), batch())[1]["loss"].item()

        first = loss_of("loss")
        self.assertEqual([loss_of(name) for name in ("twice", "loss", "twice")], [2 * first, first, 2 * first])
        metadata, _ = process.ask(talk.hello("grpo", "py:mine.py:no_such", ["."], subject="twice"))
        self.assertEqual(metadata["op"], "trouble")
        self.assertEqual(process.ask(talk.step("grpo", subject="twice"), batch())[0]["op"], "trouble")
        self.assertEqual(loss_of("loss"), first)
        self.assertEqual(process.close()[1].count("executed"), 1)

    def test_a_file_that_was_written_into_is_executed_again(self) -> None:
        process = self.start()
        for factor in (1, 30):
            self.write("mine.py", f"def loss(log_prob, mask): return {factor} * (log_prob * mask).sum()\n")
            process.ask(talk.hello("grpo", "py:mine.py:loss", ["."]))
            loss = process.ask(talk.step("grpo"), batch())[1]["loss"].item()
            self.assertEqual(loss, factor * (batch()["log_prob"] * batch()["mask"]).sum().item())

    def test_subjects_that_cannot_be_had(self) -> None:
        self.write("fine.py", "def loss(log_prob, mask): return log_prob.sum()\nnumber = 3\n")
        self.write("broken.py", "def loss(:\n")
        self.write("quits.py", "import sys\nsys.exit(1)\n")
        self.write("lacks.py", "import no_such_module_anywhere\n")
        self.write("far.py", "import near\n")
        self.write("near.py", "\nx = 1 / 0\n")
        self.write("package/__init__.py", "")
        self.write("package/part.py", "from . import other\ndef loss(log_prob, mask): return log_prob.sum()\n")
        self.write("package/other.py", "")
        process = self.start()
        cases = [("py:none.py:loss", "no file none.py"), ("py:fine.py:los", "no 'los'; it has loss"),
                 ("py:fine.py:number", "not a function"), ("fine.py:loss", "write py:"), ("py:fine.py", "write py:"),
                 ("py:broken.py:loss", "SyntaxError"), ("py:quits.py:loss", "SystemExit"),
                 ("py:quits.py:loss", "at quits.py:2: sys.exit(1)"),
                 ("py:lacks.py:loss", "at lacks.py:1: import no_such_module_anywhere"),
                 ("py:far.py:loss", "at near.py:2: x = 1 / 0"),
                 ("py:lacks.py:loss", "install it"), ("py:no_such_package.x:loss", "no_such_package"),
                 ("py:package/part.py:loss", "name it PACKAGE.MODULE:FUNCTION")]
        for entry, fragment in cases:
            metadata, _ = process.ask(talk.hello("grpo", entry, ["."]))
            self.assertEqual(metadata["op"], "trouble", entry)
            self.assertIn(fragment, metadata["message"])
            self.assertNotIn("\n", metadata["message"])
        metadata, _ = process.ask(talk.hello("grpo", "py:package.part:loss", ["."]))
        self.assertEqual((metadata["op"], metadata["file"]), ("hello", os.path.join("package", "part.py")))
        metadata, _ = process.ask(talk.hello("grpo", "py:fine.py:loss", ["."], device="quantum"))
        self.assertIn('write device = "cpu"', metadata["message"])
        metadata, _ = process.ask({**talk.hello("grpo", "py:fine.py:loss", ["."]), "protocol": "2"})
        self.assertIn("speaks 1", metadata["message"])
        self.assertEqual(process.close()[0], 0)

    def test_names_that_are_no_text_or_belong_to_others(self) -> None:
        self.write("code.py", "def loss(log_prob, mask): return log_prob.sum() / 0\n")
        self.write(os.fsdecode(b"na\xffme.py"), "def loss(log_prob, mask): raise ValueError('x')\n")
        process = self.start()
        self.assertEqual(process.ask(talk.hello("grpo", "py:code.py:loss", ["."]))[0]["file"], "code.py")
        metadata, _ = process.ask(talk.step("grpo", explain="1"), batch())
        self.assertEqual(json.loads(metadata["guilty"])["file"], "code.py")
        names = [name for name in os.listdir(self.folder.name) if name.startswith("na")]
        metadata, _ = process.ask(talk.hello("grpo", f"py:{names[0]}:loss", ["."]))
        self.assertEqual((metadata["op"], metadata["file"]), ("hello", "na?me.py"))
        self.assertEqual(process.ask(talk.step("grpo"), batch())[0]["file"], "na?me.py")

    @unittest.skipUnless(hasattr(os, "fork"), "no fork here")
    def test_a_forked_child_does_not_answer(self) -> None:
        self.write("mine.py", '''
            import os
            def loss(log_prob, mask):
                os.fork()
                return log_prob.sum()
            ''')
        process = self.start()
        process.ask(talk.hello("grpo", "py:mine.py:loss", ["."]))
        for index in range(5):
            metadata, _ = process.ask(talk.step("grpo", str(index)), batch())
            self.assertEqual((metadata["op"], metadata["id"]), ("result", str(index)))
        self.assertEqual(process.close()[0], 0)

    def test_a_cut_frame_ends_the_worker(self) -> None:
        process = self.start()
        process.process.stdin.write(struct.pack("<Q", 100) + b"{}")
        self.assertEqual(process.close()[0], 0)

    def test_an_absurd_length_is_trouble(self) -> None:
        process = self.start()
        metadata, _ = talk.read_document(process.send(struct.pack("<Q", 1 << 60))[8:])
        self.assertIn("too long", metadata["message"])

    def test_torch_absent_and_too_old(self) -> None:
        process = self.start(flags=("-S", "-E"))
        self.assertIn("install torch", process.ask(talk.hello("grpo", "py:mine.py:loss"))[0]["message"])
        self.assertEqual(process.close()[0], 0)
        names = "float64 float32 float16 bfloat16 int64 int32 uint8 bool".split()
        self.write("old/torch/__init__.py", "__version__ = '1.13.1'\n" + "".join(f"{name} = '{name}'\n" for name in names))
        process = self.start(environment={"PYTHONPATH": os.path.join(self.folder.name, "old")})
        self.assertIn("1.13.1 is too old; 2.1", process.ask(talk.hello("grpo", "py:mine.py:loss"))[0]["message"])

    def test_torch_is_imported_without_a_search_for_garbage(self) -> None:
        self.write("new/torch/__init__.py", "import gc\nraise RuntimeError(f'searched: {gc.isenabled()}')\n")
        process = self.start(environment={"PYTHONPATH": os.path.join(self.folder.name, "new")})
        self.assertIn("searched: False", process.ask(talk.hello("grpo", "py:mine.py:loss"))[0]["message"])


class Start(unittest.TestCase):
    """boot.py: the modules come on standard input."""

    setUp, write, start = Contained.setUp, Contained.write, Contained.start

    def test_another_package_of_the_same_name(self) -> None:
        self.write("installed/lossgate/__init__.py", "raise RuntimeError('the wrong one')\n")
        self.write("installed/lossgate/worker/__init__.py", "raise RuntimeError('the wrong one')\n")
        self.write("installed/lossgate/own.py", "factor = 3.0\n")
        self.write("lossgate.py", "raise RuntimeError('the wrong one')\n")
        self.write("mine.py", '''
            import lossgate.worker.frames
            from lossgate.own import factor
            def loss(log_prob, mask):
                assert not hasattr(lossgate.worker, "factor")
                return log_prob.sum() * factor
            ''')
        process = self.start(environment={"PYTHONPATH": os.path.join(self.folder.name, "installed")})
        metadata, _ = process.ask(talk.hello("grpo", "py:mine.py:loss", ["."]))
        self.assertEqual(metadata["op"], "hello", metadata)
        self.assertEqual(process.ask(talk.step("grpo"), batch())[1]["gradient.log_prob"][0, 0].item(), 3.0)

    def test_modules_beside_the_subject_stand_in_for_nobody(self) -> None:
        for name in ("json", "importlib", "linecache", "os", "struct"):
            self.write(f"{name}.py", "raise RuntimeError('not the one of the standard library')\n")
        self.write("mine.py", "def loss(log_prob, mask): return log_prob.sum()\n")
        process = self.start()
        self.assertEqual(process.ask(talk.hello("grpo", "py:mine.py:loss", ["."]))[0]["op"], "hello")

    def test_a_traceback_shows_the_lines(self) -> None:
        broken = {**talk.worker_modules(), "lossgate.worker.serving": "\nraise RuntimeError('as ' + 'planned')\n"}
        status, printed = self.start(modules=broken).close()
        self.assertEqual(status, 1)
        self.assertIn('File "<lossgate>/worker/serving.py", line 2', printed)
        self.assertIn("raise RuntimeError('as ' + 'planned')", printed)

    def test_modules_that_no_argument_would_hold(self) -> None:
        more = {**talk.worker_modules(), "lossgate.worker.ballast": "# ballast\n" * (1 << 18)}
        process = self.start(modules=more)
        self.assertEqual(process.ask({"op": "dance"})[0]["op"], "trouble")
        self.assertEqual(process.close()[0], 0)

    def test_an_end_before_the_modules(self) -> None:
        with open(os.path.join(talk.HERE, "boot.py"), encoding="utf-8") as file:
            boot = file.read()
        for sent in (b"", b"123", struct.pack("<Q", 100) + b"{}"):
            ended = subprocess.run([sys.executable, "-c", boot], input=sent, capture_output=True, timeout=60)
            self.assertEqual((ended.returncode, ended.stdout, ended.stderr), (0, b"", b""))

    def test_as_a_module_of_an_installed_package(self) -> None:
        self.write("random.py", "raise RuntimeError('not the one of the standard library')\n")
        self.write("mine.py", "def loss(log_prob, mask): return log_prob.sum()\n")
        frames = [talk.write_frame(talk.hello("grpo", "py:mine.py:loss", ["."])),
                  talk.write_frame(talk.step("grpo"), batch())]
        ended = subprocess.run([sys.executable, "-m", "lossgate.worker"], input=b"".join(frames), capture_output=True,
                               timeout=120, cwd=self.folder.name, env={**os.environ, "PYTHONPATH": talk.HERE})
        size = 8 + struct.unpack("<Q", ended.stdout[:8])[0]
        said = [talk.read_document(frame)[0]["op"] for frame in (ended.stdout[8:size], ended.stdout[size + 8:])]
        self.assertEqual((said, ended.returncode), (["hello", "result"], 0))


class InsideATestProcess(unittest.TestCase):
    def test_serve_leaves_the_descriptors_alone(self) -> None:
        request, to_worker = os.pipe()
        from_worker, reply = os.pipe()
        before = [os.fstat(0).st_ino, os.fstat(1).st_ino, torch.get_num_threads(), list(sys.path)]
        serving = threading.Thread(target=serve, args=(sum_loss, request, reply))
        serving.start()
        answers = []
        for frame in (talk.write_frame(talk.hello("grpo", paths=["/nowhere"], threads="1")),
                      talk.write_frame(talk.step("grpo"), batch())):
            os.write(to_worker, frame)
            size = struct.unpack("<Q", os.read(from_worker, 8))[0]
            answers.append(talk.read_document(os.read(from_worker, size))[0]["op"])
        os.close(to_worker)
        serving.join(30)
        self.assertEqual(answers, ["hello", "result"])
        self.assertEqual([os.fstat(0).st_ino, os.fstat(1).st_ino, torch.get_num_threads(), list(sys.path)], before)
        for descriptor in (request, from_worker, reply):
            os.close(descriptor)  # still open: they belong to the caller

    def test_an_interrupt_is_the_users(self) -> None:
        def subject(log_prob, mask): raise KeyboardInterrupt
        answering = Worker(subject)
        answering.answer(talk.write_frame(talk.hello("grpo"))[8:])
        with self.assertRaises(KeyboardInterrupt):
            answering.answer(talk.write_frame(talk.step("grpo"), batch())[8:])


if __name__ == "__main__":
    unittest.main()
