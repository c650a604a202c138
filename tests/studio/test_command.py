"""`mercer studio` as a program: it says where it is, answers there, and leaves as it should."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from urllib.request import urlopen

import pytest

STUDIO = [sys.executable, "-m", "mercer", "studio", "--no-browser"]


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_it_says_where_it_is_and_leaves_with_130_at_ctrl_c(tmp_path):
    table = tmp_path / "trees.csv"
    table.write_text("size,age,kind\n1,2,oak\n3,4,elm\n5,6,oak\n", encoding="utf-8")
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    process = subprocess.Popen([*STUDIO, str(table), "--json"], **pipes)
    try:
        found = json.loads(process.stdout.readline())
        with urlopen(found["url"], timeout=60) as page:
            assert b"mercer-studio" in page.read()
        process.send_signal(signal.SIGINT)
        rest, said = process.communicate(timeout=60)
    finally:
        process.kill()
        process.communicate()
    assert process.returncode == 130
    assert found["schema"] == "mercer.studio/1" and found["table"] == str(table)
    assert found["url"].startswith(f"http://127.0.0.1:{found['port']}/") and len(found["url"]) > 50
    assert rest == "" and found["url"] in said


def test_a_table_that_is_not_there_is_a_sentence():
    done = subprocess.run([*STUDIO, "nowhere.csv"], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 1
    assert "there is no file nowhere.csv" in done.stderr and "Traceback" not in done.stderr
