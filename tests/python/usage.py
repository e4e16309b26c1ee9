"""What a caller may write, for mypy --strict; and that it says what it means."""

from __future__ import annotations

from typing import Optional, Union

import blindfuse


def use(words: blindfuse.Client, names: list[str], numbers: list[int]) -> None:
    value: Optional[bytes] = words.get("owl")
    by_name: dict[str, Optional[bytes]] = words.get_many(names)
    by_number: dict[int, Optional[bytes]] = words.get_many(numbers)
    sizes: list[int] = [answer.response_bytes for answer in words.look_up([*names, b"owl"])]
    asked: list[bool] = [answer.asked for answer in words.look_up(names)]
    epoch: str = words.info.epoch
    signer: Optional[blindfuse.Signer] = words.signer
    print(signer.key if signer else "not signed", signer and signer.time.year)
    value_or_empty: bytes = words.get("owl", b"")
    text: Optional[str] = words.get_text("owl")
    text_or_number: Union[str, int] = words.get_text("owl", 0)
    print(value_or_empty, text, text_or_number)
    print(value, by_name, by_number, sizes, asked, epoch, words["owl"], "owl" in words)
    words.get(1.5)  # type: ignore[call-overload]
    words.get(None)  # type: ignore[call-overload]


async def use_async(url: str) -> dict[str, Optional[bytes]]:
    async with await blindfuse.aconnect(url, timeout=2.5, progress=print) as words:
        first: Optional[bytes] = await words.aget("owl")
        print(first)
    blindfuse.aconnect(url, mode="hnt")  # type: ignore[arg-type]
    async with blindfuse.aconnect(url, mode="hint") as words:
        text: str = await words.aget_text("owl", "none")
        print(text, await words.aget("owl", b""))
        return await words.aget_many(["owl"])


def make() -> None:
    database = blindfuse.Database.build({"owl": b"bird"}, "db")
    blindfuse.Database.build(((b"a", "b") for _ in range(1)), "db", shards=2)
    blindfuse.Database.build(["first", "second"], "db", index=True)
    birds: dict[str, str] = {"owl": "bird"}
    blindfuse.Database.build(birds, "db", sign="key")
    with database.serve() as server, server.connect() as words:
        use(words, ["owl"], [])
