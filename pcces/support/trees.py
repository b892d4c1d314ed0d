"""Tuples of tuples of arrays (NamedTuples included): the states of algorithms, for files and for several seeds side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np


def leaves(tree: Any) -> list[Any]:
    """The arrays in a tree, in order.

    >>> leaves((1, (2, 3)))
    [1, 2, 3]
    """
    if isinstance(tree, tuple | list):
        return [leaf for part in tree for leaf in leaves(part)]
    return [tree]


def named_leaves(tree: Any, name: str) -> dict[str, Any]:
    """The arrays in a tree, in order, by the name of the whole and of the fields that lead to each.

    >>> import collections
    >>> named_leaves((1, collections.namedtuple("Point", "x y")(2, 3)), "start")
    {'start.0': 1, 'start.1.x': 2, 'start.1.y': 3}
    """
    if not isinstance(tree, tuple | list):
        return {name: tree}
    keys = getattr(tree, "_fields", range(len(tree)))
    parts = [named_leaves(part, f"{name}.{key}") for key, part in zip(keys, tree)]
    return {leaf_name: leaf for part in parts for leaf_name, leaf in part.items()}


def rebuilt(template: Any, values: Iterable[Any]) -> Any:
    """A tree of the template's structure with other leaves.

    >>> rebuilt((1, (2, 3)), "abc")
    ('a', ('b', 'c'))
    """
    left = iter(values)

    def build(part: Any) -> Any:
        if not isinstance(part, tuple | list):
            return next(left)
        children = [build(child) for child in part]
        return type(part)(*children) if hasattr(part, "_fields") else type(part)(children)

    return build(template)


def mapped(function: Callable[..., Any], *trees: Any) -> Any:
    """A function of corresponding leaves, leaf by leaf.

    >>> mapped(max, (1, (5,)), (3, (4,)))
    (3, (5,))
    """
    return rebuilt(trees[0], map(function, *map(leaves, trees)))


def stacked(trees: Sequence[Any]) -> Any:
    """Trees as one tree whose arrays have an axis more, the first.

    >>> stacked([(1, (2,)), (3, (4,))])
    (array([1, 3]), (array([2, 4]),))
    """
    return mapped(lambda *parts: np.stack([np.asarray(part) for part in parts]), *trees)


def entry(tree: Any, i: int) -> Any:
    """Entry i of every array in a tree.

    >>> entry((np.array([1, 3]), (np.array([2, 4]),)), 1)
    (array(3), (array(4),))
    """
    return mapped(lambda leaf: np.asarray(leaf[i]), tree)
