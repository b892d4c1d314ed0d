"""Two processes and one folder."""

import os
import signal
import subprocess
import sys
import threading
import time

import pytest
import small
from small import LOOSE, SMALL, environment, pcces, start

import pcces as library
from pcces.support.lock import NAME, FolderInUseError, alone_in, check_free

FEW = dict(small.FEW, report=False)

HOLD = """
import sys, time
from pcces.support.lock import alone_in
with alone_in(sys.argv[1]):
    print("mine", flush=True)
    time.sleep(60)
"""


def holding(folder):
    """A process that has the folder."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, folder], stdout=subprocess.PIPE, text=True, env=environment()
    )
    assert process.stdout.readline() == "mine\n"
    return process


def test_a_folder_belongs_to_one_process_until_it_ends_however_it_does(tmp_path):
    check_free(tmp_path)
    process = holding(tmp_path)
    for attempt in (lambda: check_free(tmp_path), lambda: alone_in(tmp_path).__enter__()):
        with pytest.raises(
            FolderInUseError, match=rf"another process works in .* \({process.pid} on \S+\): wait for it"
        ):
            attempt()
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert (tmp_path / NAME).exists()  # which means nothing now
    with alone_in(tmp_path):
        assert (tmp_path / NAME).read_text().startswith(f"{os.getpid()} on ")
    assert not (tmp_path / NAME).exists()


def test_an_owner_who_has_not_said_yet_who_it_is_is_waited_for(tmp_path):
    fcntl = pytest.importorskip("fcntl")
    with open(tmp_path / NAME, "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        owner = threading.Timer(0.1, lambda: (file.write("7 on mars\n"), file.flush()))
        owner.start()
        with pytest.raises(FolderInUseError, match=r"\(7 on mars\)"):
            check_free(tmp_path)
        owner.join()
        file.truncate(0)
        threading.Timer(0.1, lambda: fcntl.flock(file, fcntl.LOCK_UN)).start()
        check_free(tmp_path)  # somebody had only looked whether it was free


def test_a_lock_that_is_a_link_is_not_followed(tmp_path):
    (tmp_path / "precious").write_text("mine")
    (tmp_path / NAME).symlink_to(tmp_path / "precious")
    with pytest.raises(OSError), alone_in(tmp_path):
        pass
    assert (tmp_path / "precious").read_text() == "mine"


def test_a_training_has_its_folder_to_itself_and_gives_it_back(tmp_path):
    process = holding(tmp_path / "run")
    with pytest.raises(FolderInUseError, match=f"{process.pid} on "):
        library.train("CartPole-v0", out=tmp_path / "run", **FEW)
    process.kill()
    process.wait()
    library.train("CartPole-v0", out=tmp_path / "run", **FEW)
    assert NAME not in [file.name for file in (tmp_path / "run").iterdir()]

    def fail(runs):
        assert (tmp_path / "other" / NAME).exists()
        with pytest.raises(FolderInUseError):
            library.train("CartPole-v0", out=tmp_path / "other", resume=True, **FEW)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        library.train("CartPole-v0", out=tmp_path / "other", callback=fail, **FEW)
    assert not (tmp_path / "other" / NAME).exists()


@pytest.mark.slow
def test_of_several_trainings_in_one_folder_one_goes_on_and_the_others_say_who_has_it(tmp_path):
    words = ["train", *SMALL, *LOOSE, "--out", "run"]
    several = [start(*words, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(3)]
    while not (tmp_path / "run" / "checkpoint.npz").exists():
        time.sleep(0.05)
    late = pcces(*words, "--resume", cwd=tmp_path)
    ended = [(process, *process.communicate(timeout=120)) for process in several]
    assert sorted(process.returncode for process in several) == [0, 2, 2]
    (owner,) = [process for process, out, _ in ended if out.startswith("CERTIFIED")]
    for process, out, said in ended:
        if process is not owner:
            assert out == "" and said.count("\n") == 1 and f"another process works in run ({owner.pid} on " in said
    assert late.returncode == 2 and f"({owner.pid} on " in late.stderr
    assert len(library.load(tmp_path / "run").metrics["return"]) == 200
