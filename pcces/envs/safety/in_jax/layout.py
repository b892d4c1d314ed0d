"""Where things start, by the rules of `pcces.envs.safety.layout`: from other random numbers, with its distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..layout import LAYOUTS, TRIES, Placement

Array = Any
RARE = 1e-6  # tries that would change less than this share of layouts are left out


def sample_layout(key: Array, groups: Sequence[Placement], extent: float) -> Array:
    """Places (n, 2): one object after the other, clear of those before it; from the start when one finds no place.

    >>> sample_layout(jax.random.key(0), [Placement("agent", 1, 0.4), Placement("hazards", 2, 0.18)], 1.5).shape
    (3, 2)
    """
    tries = _tries(groups, extent)
    if max(tries) < TRIES:  # with so much room the first attempt is complete
        return _attempt(key, groups, extent, tries)[0]

    @jax.custom_batching.custom_vmap
    def layouts(keys: Array) -> Array:
        return _first_complete(keys, lambda key: _attempt(key, groups, extent, tries))

    @layouts.def_vmap
    def _of_all(axis_size: int, in_batched: list[bool], keys: Array) -> tuple[Array, bool]:
        places = layouts(keys.reshape(-1))
        return places.reshape(*keys.shape, *places.shape[1:]), True

    return layouts(key[None])[0]


def sample_place(
    key: Array, keepout: float, extent: float, others: Array, keepouts: np.ndarray, tries: int
) -> tuple[Array, Array]:
    """The first of so many candidates that is clear of the others, and whether there was one; else the first of all."""
    candidates = _candidates(key, keepout, extent, tries)
    return _first(candidates, _clear(candidates, others, keepouts + keepout))


def each(groups: Sequence[Placement]) -> np.ndarray:
    """The keepout of each object."""
    return np.concatenate([[group.keepout] * group.count for group in groups])


def _attempt(key: Array, groups: Sequence[Placement], extent: float, tries: Sequence[int]) -> tuple[Array, Array]:
    """Places (n, 2), and whether every object found one."""
    keepouts = each(groups)
    keys = jax.random.split(key, len(keepouts) + 1)
    places, complete = jnp.zeros((0, 2)), jnp.bool_(True)
    for group, n in zip(groups, tries):
        done = len(places)
        own = keys[done : done + group.count]
        candidates = jax.vmap(lambda key, g=group, n=n: _candidates(key, g.keepout, extent, n))(own)
        clear = _clear(candidates, places, keepouts[:done] + group.keepout)
        for i in range(group.count):  # among each other
            clear_now = clear[i] & _clear(candidates[i], places[done:], np.full(i, 2 * group.keepout))
            place, free = _first(candidates[i], clear_now)
            places, complete = jnp.concatenate([places, place[None]]), complete & free
    return places, complete


def _candidates(key: Array, keepout: float, extent: float, tries: int) -> Array:
    return jax.random.uniform(key, (tries, 2), minval=keepout - extent, maxval=extent - keepout)


def _clear(candidates: Array, others: Array, distances: np.ndarray) -> Array:
    squares = (candidates[..., :1] - others[:, 0]) ** 2 + (candidates[..., 1:] - others[:, 1]) ** 2
    return (squares >= jnp.asarray(distances**2, jnp.float32)).all(-1)


def _first(candidates: Array, clear: Array) -> tuple[Array, Array]:
    first = jnp.argmax(clear)
    return candidates[first], clear[first]


def _tries(groups: Sequence[Placement], extent: float) -> list[int]:
    """How many candidates the objects of a group need: as many as the rules allow, if others may cover the square."""
    tries: list[int] = []
    for i, group in enumerate(groups):
        others = each(groups[: i + 1])[:-1]
        covered = math.pi * ((others + group.keepout) ** 2).sum() / (2 * (extent - group.keepout)) ** 2
        needed = TRIES if covered >= 1 else math.ceil(math.log(RARE) / math.log(max(covered, RARE)))
        tries.append(min(TRIES, needed))
    return tries


def _first_complete(keys: Array, attempt: Any) -> Array:
    """The first complete attempt of each key. Attempt number i is made with i folded into the key.

    One in sixty may be complete. So that none waits for the last, the whole batch works on the keys that have none yet.
    """
    batch = len(keys)
    slots = jnp.arange(batch)

    def work(carry: tuple) -> tuple:
        made, done, places = carry  # attempts (batch,) of each key, whether one was complete, and its places
        order, left = jnp.argsort(done, stable=True), batch - done.sum()
        row, ahead = order[slots % left], slots // left
        number = made[row] + ahead
        tried, complete = jax.vmap(attempt)(jax.vmap(jax.random.fold_in)(keys[row], number))
        # The first of a key's complete attempts counts, whoever made it.
        winner = jnp.full(batch, LAYOUTS).at[row].min(jnp.where(complete, number, LAYOUTS))
        won = complete & (number == winner[row])
        places = places.at[jnp.where(won, row, batch)].set(tried, mode="drop")
        made = made.at[row].add(1)
        return made, done | (winner < LAYOUTS) | (made >= LAYOUTS), places

    shape = jax.eval_shape(attempt, keys[0])[0]
    start = jnp.zeros(batch, jnp.int32), jnp.zeros(batch, bool), jnp.zeros((batch, *shape.shape))
    return jax.lax.while_loop(lambda carry: ~carry[1].all(), work, start)[2]
