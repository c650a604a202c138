"""Questions of one page in the order they came; what a newer one makes pointless is not computed."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from concurrent.futures import Executor

from mercer.studio.limits import MOST_WAITING
from mercer.studio.readers import Json

Send = Callable[[Json], Awaitable[None]]
Reply = Callable[[object], Json]


def supersedes(new: Json, old: Json) -> bool:
    """Whether the answer to `old` would never be seen.

    A state replaces the states and moves before it; a move replaces a move of the same row; a look replaces a
    look.

    >>> supersedes({"move": [3, [0.0, 1.0]]}, {"move": [3, [0.0, 0.5]]})
    True
    >>> supersedes({"move": [3, [0.0, 1.0]]}, {"state": {}})
    False
    """
    if "state" in new:
        return "state" in old or "move" in old
    if "look" in new:
        return "look" in old
    if "move" in new and "move" in old:
        return bool(new["move"][:1] == old["move"][:1])
    return False


class Lane:
    """One question at a time; the others wait, or are told that they are stale."""

    def __init__(self, reply: Reply, send: Send, pool: Executor) -> None:
        self.reply = reply
        self.send = send
        self.pool = pool
        self.waiting: deque[Json] = deque()
        self.wake = asyncio.Event()

    async def put(self, message: Json) -> None:
        """Take a question in."""
        stale = [old for old in self.waiting if supersedes(message, old)]
        for old in stale:
            self.waiting.remove(old)
            await self.send({"seq": old.get("seq"), "stale": True})
        if len(self.waiting) >= MOST_WAITING:
            sentence = f"{len(self.waiting)} questions are waiting already. Try again in a moment."
            await self.send(
                {"seq": message.get("seq"), "problem": {"where": "message", "sentence": sentence}}
            )
            return
        self.waiting.append(message)
        self.wake.set()

    async def run(self) -> None:
        """Answer until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            await self.wake.wait()
            while self.waiting:
                message = self.waiting.popleft()
                await self.send(await loop.run_in_executor(self.pool, self.reply, message))
            self.wake.clear()
