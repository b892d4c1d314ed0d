"""Seeds as people choose them: any whole number from 0 to 2^63 - 1, and what follows from them."""

from __future__ import annotations

import hashlib
import operator
from typing import Any

SEEDS = 2**63
CERTIFY_SEED = 10_000_000  # far from any training seed: these episodes are fresh
APART = 1000  # between the tests of two runs


def checked_seed(seed: Any, name: str = "a seed") -> int:
    """The seed as a Python number, if it is one.

    >>> import numpy as np
    >>> checked_seed(np.uint32(7)), checked_seed(20241118)
    (7, 20241118)
    >>> checked_seed(-1)
    Traceback (most recent call last):
    ...
    ValueError: a seed must be a whole number from 0 to 2^63 - 1, got -1
    """
    try:
        number = operator.index(seed)
    except TypeError:
        number = -1
    if not 0 <= number < SEEDS:
        raise ValueError(f"{name} must be a whole number from 0 to 2^63 - 1, got {seed!r}")
    return number


def certify_seed(seed: int) -> int:
    """The seed of the fresh episodes that a run of this seed is tested on; some numbers after it are for further tests.

    >>> certify_seed(3), 2**62 <= certify_seed(2**63 - 1) < 2**63 - APART
    (10003000, True)
    """
    simple = CERTIFY_SEED + APART * seed
    if simple < SEEDS - APART:
        return simple
    words = hashlib.sha256(f"pcces certify {seed}".encode()).digest()
    return SEEDS // 2 + int.from_bytes(words[:8]) % (SEEDS // 2 - APART)
