"""What a client tells its caller."""

from __future__ import annotations

import datetime
from dataclasses import dataclass


@dataclass(frozen=True)
class Answer:
    """One look-up, and what it took."""

    value: bytes | None  # None: the key is not there, or was not asked for
    query_bytes: int  # its share where one query asks for several keys, and so of the response
    response_bytes: int
    prepare_seconds: float  # its share of the pass that made its query
    server_seconds: float  # of the whole request, which has request_keys keys
    decode_seconds: float
    total_seconds: float  # all of that, and making the query from the prepared one
    request_keys: int = 1
    asked: bool = True  # False: other keys of the call took its places in requests for several keys; ask for it again

    @property
    def found(self) -> bool:
        return self.value is not None


@dataclass(frozen=True)
class SyncResult:
    """One synchronization of the hints."""

    epoch: str
    shard_count: int
    part_count: int  # hints of shards, or masks of packs
    shards_fetched: int  # of those parts
    bytes_fetched: int  # of them, and of the table of shards and packs
    hint_bytes: int  # of all of them
    seconds: float


@dataclass(frozen=True)
class Signer:
    """The signer of the database, as its last manifest names it."""

    key: str  # the public key, 64 hex digits
    sequence: int  # the manifest's number: a larger one is newer
    time: datetime.datetime  # when it was signed, in UTC


@dataclass(frozen=True)
class DatabaseInfo:
    """One epoch of a database."""

    epoch: str  # its identity: 64 hex digits
    is_index: bool  # keys are the numbers 0 .. key_count - 1, not byte strings
    key_count: int
    value_bytes_max: int
    parameter_set: str  # "lwe-1774"
    mode: str  # "hint"; "packed": masks instead, which are smaller, and queries carry a packing key
    row_count: int  # of every shard: the words of a query, for each bucket
    shard_count: int
    query_bytes: int
    response_bytes: int
    hint_bytes: int  # hints of all shards, or masks: what a new client downloads
    failure_log2: float  # a look-up goes wrong with at most 2 to this
    keys_per_request: int = 1  # where one query asks for several keys; otherwise 1, and a request has up to 16 queries
    bucket_count: int = 1  # a query has row_count words for each
