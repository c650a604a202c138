"""`mercer studio`: a page on this machine, until Ctrl-C.

The object that --json prints in one line as soon as the page can be opened, schema "mercer.studio/1":

    url       the whole address, with its token
    port      the port taken, also where 0 was asked for
    table     the file that the page begins with, or null
"""

from __future__ import annotations

import json
import webbrowser
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mercer.cli.codes import FAILED
from mercer.cli.serve import answer, listen, url_of
from mercer.cli.talk import complain
from mercer.errors import MercerError

if TYPE_CHECKING:
    from fastapi import FastAPI

HOST = "127.0.0.1"


@dataclass(frozen=True)
class Request:
    """What was asked for on the command line."""

    table: str | None
    port: int
    browser: bool
    as_json: bool = False


def run_studio(asked: Request) -> int:
    """Listen, say where, open the page, answer until Ctrl-C; return the exit code."""
    from mercer.studio.limits import MOST_BYTES

    try:
        token, app = _application(asked)
        listening = listen(HOST, asked.port)
    except ModuleNotFoundError as error:
        complain(f"the studio needs {error.name}, which is not installed: pip install 'mercer[studio]'.")
        return FAILED
    except (MercerError, OSError) as error:
        complain(str(error))
        return FAILED
    url = f"{url_of(listening)}/{token}/"
    complain(f"the studio is at {url} until Ctrl-C.")
    if asked.as_json:
        facts = {
            "schema": "mercer.studio/1",
            "url": url,
            "port": listening.getsockname()[1],
            "table": asked.table,
        }
        print(json.dumps(facts), flush=True)
    if asked.browser:
        webbrowser.open(url)
    return answer(app, listening, socket_bytes=MOST_BYTES)


def _application(asked: Request) -> tuple[str, FastAPI]:
    import uvicorn  # noqa: F401
    import websockets  # noqa: F401

    from mercer import read_table
    from mercer.studio.app import make_app, new_token
    from mercer.studio.dropped import Dropped
    from mercer.studio.session import Session

    table = None if asked.table is None else Dropped.of_table(asked.table, read_table(asked.table))
    # the first fit loads what all others need, so that the page has not to wait for it
    Session(table=table).reply({"state": {"data": {"preset": "moons"}}, "want": ["main"]})
    token = new_token()
    return token, make_app(token, table=table)
