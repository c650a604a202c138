"""Bodies that no client should send: each is refused with a sentence, and none harms the server."""

from __future__ import annotations

import json

GOOD = {"size": 2.0, "kind": "oak", "when": "2021-05-01", "note": "moss", "flag": True}


def with_cell(**cells: object) -> bytes:
    return json.dumps({"rows": [GOOD, {**GOOD, **cells}]}).encode()


def raw(cell: str, column: str = "size") -> bytes:
    """The good row, one of its cells replaced by text that need not be JSON."""
    row = {**GOOD, column: "@"}
    return json.dumps({"rows": [row]}).replace('"@"', cell).encode()


BODIES: dict[str, bytes] = {
    "nothing": b"",
    "bytes": bytes(range(256)),
    "zeros": bytes(1000),
    "not UTF-8": b'{"rows": [{"size": "\xff\xfe"}]}',
    "UTF-16": json.dumps({"rows": [GOOD]}).encode("utf-16"),
    "cut off": json.dumps({"rows": [GOOD]}).encode()[:-9],
    "two documents": b'{"rows": []} {"rows": []}',
    "a number": b"3",
    "a list": b"[1, 2]",
    "null": b"null",
    "no rows": b"{}",
    "rows null": b'{"rows": null}',
    "rows empty": b'{"rows": []}',
    "rows a text": b'{"rows": "all"}',
    "rows an object": b'{"rows": {"0": 1}}',
    "another key": b'{"rows": [], "__class__": "os.system"}',
    "a row null": b'{"rows": [null]}',
    "a row a list": b'{"rows": [[1, 2, 3, 4]]}',
    "a row a number": b'{"rows": [7]}',
    "a row empty": b'{"rows": [{}]}',
    "an unknown column": with_cell(price=3.0),
    "an unknown surrogate": raw("1").replace(b'"size"', b'"\\ud800"'),
    "many unknown columns": json.dumps({"rows": [{str(j): j for j in range(50_000)}]}).encode(),
    "a missing column": json.dumps({"rows": [{k: v for k, v in GOOD.items() if k != "kind"}]}).encode(),
    "a key twice": b'{"rows": [], "rows": []}',
    "a column twice": raw('1, "size": 2'),
    "deep lists": b"[" * 100_000,
    "deep lists, closed": b'{"rows": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "deep objects": b'{"rows":' * 100_000,
    "a deep cell": raw("[" * 900 + "]" * 900),
    "NaN": raw("NaN"),
    "Infinity": raw("-Infinity"),
    "too large for a double": raw("1e999"),
    "a huge whole number": raw("9" * 4000),
    "a whole number too long to read": raw("9" * 100_000),
    "a number whose square overflows": raw("1e300"),
    "text where a number belongs": raw('"large"'),
    "a number as text": raw('"2.0"'),
    "true where a number belongs": raw("true"),
    "a list where a number belongs": raw("[1]"),
    "an object where a number belongs": raw('{"$gt": 0}'),
    "a number where text belongs": raw("3", "kind"),
    "a list where text belongs": raw('["oak"]', "kind"),
    "half of a surrogate pair": raw('"\\ud800"', "kind"),
    "half of a pair in a text": raw('"moss \\udfff"', "note"),
    "a date that is none": raw('"yesterday"', "when"),
    "a date with a month too many": raw('"2021-13-01"', "when"),
    "a date outside of calendars": raw('"99999-01-01"', "when"),
    "a text too long": raw(json.dumps("moss " * 40_000), "note"),
    "a truth value as text": raw('"yes"', "flag"),
    "octal": raw("012"),
    "hexadecimal": raw("0x12"),
    "a comment": raw("1 /* one */"),
    "a trailing comma": raw("1,,"),
    "single quotes": b"{'rows': []}",
    "a level too high": json.dumps({"rows": [GOOD], "level": 1.0}).encode(),
    "a level of text": json.dumps({"rows": [GOOD], "level": "high"}).encode(),
    "a form": b"rows=1&level=2",
    "XML": b'<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "b">]><x>&a;</x>',
    "too many rows": b'{"rows": [' + b"{}," * 20_000 + b"{}]}",
    "many small lists": b'{"rows": [' + b"[]," * 5_000 + b"[]]}",
}
