"""What the operations of JAX do to arrays that are taken apart into numbers: a rule for each."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, reduce
from itertools import pairwise, product
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from pcces.engines.kernels.numbers import Numbers, UnsupportedError, apply, as_numbers, numbers

Array = Any
# fmt: off
ELEMENTWISE = frozenset((
    "abs", "acos", "acosh", "add", "and", "asin", "asinh", "atan", "atan2", "atanh", "bitcast_convert_type",
    "ceil", "convert_element_type", "cos", "cosh", "div", "eq", "erf_inv", "exp", "exp2", "expm1", "floor", "ge",
    "gt", "integer_pow", "is_finite", "le", "log", "log1p", "logistic", "lt", "max", "min", "mul", "ne", "neg",
    "not", "or", "pow", "rem", "rsqrt", "select_n", "shift_left", "shift_right_arithmetic", "shift_right_logical",
    "sign", "sin", "sinh", "sqrt", "square", "sub", "tan", "xor",
))
# fmt: on


def _is(a: Any, value: float) -> bool:
    return isinstance(a, np.generic) and a == value


def _product(a: Any, b: Any) -> Any:
    """Without what is 0 or 1 for all episodes: matrices may have such entries by their structure."""
    if _is(a, 0) or _is(b, 1):
        return a
    if _is(a, 1) or _is(b, 0):
        return b
    return apply(lax.mul, a, b)


def _sum(a: Any, b: Any) -> Any:
    return b if _is(a, 0) else a if _is(b, 0) else apply(lax.add, a, b)


def _difference(a: Any, b: Any) -> Any:
    return a if _is(b, 0) else apply(lax.sub, a, b)


FOLDED: dict[str, Callable[..., Any]] = {"mul": _product, "add": _sum, "sub": _difference}


def elementwise(eqn: Any, *args: Numbers) -> Numbers:
    """The operation of an equation, number by number."""
    shape = eqn.outvars[0].aval.shape
    spread = [np.broadcast_to(a, shape) if a.shape != shape else a for a in args]
    bind = FOLDED.get(eqn.primitive.name) or partial(apply, partial(eqn.primitive.bind, **eqn.params))
    return numbers(shape, (bind(*(a[i] for a in spread)) for i in np.ndindex(*shape)))


def _tanh(eqn: Any, x: Numbers) -> Numbers:
    # A handful of instructions, exact to the last bit of 1; a library's tanh has branches.
    def tanh(v: Array) -> Array:
        return 1 - 2 / (1 + jnp.exp(2 * v))

    return numbers(x.shape, (tanh(v) for v in x.flat))


def _round(eqn: Any, x: Numbers) -> Numbers:
    def nearest_even(v: Array) -> Array:
        up = jnp.floor(v + 0.5)
        odd = up - 2 * jnp.floor(0.5 * up) == 1
        return jnp.where((up - v == 0.5) & odd, up - 1, up)

    def away(v: Array) -> Array:
        return jnp.where(v < 0, -jnp.floor(0.5 - v), jnp.floor(v + 0.5))

    to_even = eqn.params["rounding_method"] == lax.RoundingMethod.TO_NEAREST_EVEN
    return numbers(x.shape, (apply(nearest_even if to_even else away, v) for v in x.flat))


def _clamp(eqn: Any, low: Numbers, x: Numbers, high: Numbers) -> Numbers:
    low, high = np.broadcast_to(low, x.shape), np.broadcast_to(high, x.shape)
    bounded = (apply(lax.min, apply(lax.max, x[i], low[i]), high[i]) for i in np.ndindex(*x.shape))
    return numbers(x.shape, bounded)


def _slice(eqn: Any, x: Numbers) -> Numbers:
    p = eqn.params
    steps = p["strides"] or (1,) * x.ndim
    return x[tuple(slice(*bounds) for bounds in zip(p["start_indices"], p["limit_indices"], steps))]


def _broadcast_in_dim(eqn: Any, x: Numbers) -> Numbers:
    shape, where = eqn.params["shape"], eqn.params["broadcast_dimensions"]
    expanded = x.reshape([x.shape[where.index(d)] if d in where else 1 for d in range(len(shape))])
    return np.broadcast_to(expanded, shape)


def _dot_general(eqn: Any, a: Numbers, b: Numbers) -> Numbers:
    (ca, cb), (ba, bb) = eqn.params["dimension_numbers"]
    fa = [d for d in range(a.ndim) if d not in (*ca, *ba)]
    fb = [d for d in range(b.ndim) if d not in (*cb, *bb)]
    batch, rows, columns = [a.shape[d] for d in ba], [a.shape[d] for d in fa], [b.shape[d] for d in fb]
    terms = int(np.prod([a.shape[d] for d in ca], dtype=int))
    left = np.transpose(a, (*ba, *fa, *ca)).reshape(int(np.prod(batch)), int(np.prod(rows)), terms)
    right = np.transpose(b, (*bb, *fb, *cb)).reshape(int(np.prod(batch)), int(np.prod(columns)), terms)

    def entry(i: int, j: int, k: int) -> Array:
        return reduce(_sum, (_product(x, y) for x, y in zip(left[i, j], right[i, k])))

    every = product(*(range(n) for n in (left.shape[0], left.shape[1], right.shape[1])))
    return numbers((*batch, *rows, *columns), (entry(*index) for index in every))


def _reduction(operation: Callable[..., Array]) -> Callable[..., Numbers]:
    def rule(eqn: Any, x: Numbers) -> Numbers:
        axes = eqn.params["axes"]
        kept = [d for d in range(x.ndim) if d not in axes]
        flat = np.transpose(x, (*kept, *axes)).reshape([x.shape[d] for d in kept] + [-1])
        if flat.shape[-1] == 0:
            raise UnsupportedError("a reduction of nothing")
        folded = (reduce(operation, flat[i]) for i in np.ndindex(*flat.shape[:-1]))
        return numbers(flat.shape[:-1], folded)

    return rule


def _argument(better: Callable[..., Array]) -> Callable[..., Numbers]:
    def rule(eqn: Any, x: Numbers) -> Numbers:
        (axis,), kind = eqn.params["axes"], eqn.params["index_dtype"]
        flat = np.moveaxis(x, axis, -1)

        def where_best(row: Numbers) -> Array:
            best, index = row[0], np.zeros((), kind)[()]
            for i in range(1, len(row)):
                now = apply(better, row[i], best)
                best = apply(jnp.where, now, row[i], best)
                index = apply(jnp.where, now, np.asarray(i, kind)[()], index)
            return index

        return numbers(flat.shape[:-1], (where_best(flat[i]) for i in np.ndindex(*flat.shape[:-1])))

    return rule


def _cumulative(operation: Callable[..., Array]) -> Callable[..., Numbers]:
    def rule(eqn: Any, x: Numbers) -> Numbers:
        axis, back = eqn.params["axis"], eqn.params["reverse"]
        out = np.moveaxis(x.copy(), axis, 0)
        order = range(len(out))[::-1] if back else range(len(out))
        for before, now in pairwise(order):
            for i in np.ndindex(*out.shape[1:]):
                out[(now, *i)] = apply(operation, out[(before, *i)], out[(now, *i)])
        return np.moveaxis(out, 0, axis)

    return rule


def _split(eqn: Any, x: Numbers) -> list[Numbers]:
    return np.split(x, np.cumsum(eqn.params["sizes"])[:-1], axis=eqn.params["axis"])


def _unstack(eqn: Any, x: Numbers) -> list[Numbers]:
    rows = np.moveaxis(x, eqn.params["axis"], 0)
    return [numbers(rows.shape[1:], rows[i : i + 1].flat) for i in range(len(rows))]


def _iota(eqn: Any) -> Numbers:
    p = eqn.params
    shape = [-1 if d == p["dimension"] else 1 for d in range(len(p["shape"]))]
    return as_numbers(
        np.broadcast_to(np.arange(p["shape"][p["dimension"]], dtype=p["dtype"]).reshape(shape), p["shape"])
    )


def _same(eqn: Any, x: Numbers) -> Numbers:
    return x


def _reshape(eqn: Any, x: Numbers) -> Numbers:
    return x.reshape(eqn.outvars[0].aval.shape)


RULES: dict[str, Callable[..., Any]] = {
    "argmax": _argument(lax.gt),
    "argmin": _argument(lax.lt),
    "broadcast_in_dim": _broadcast_in_dim,
    "clamp": _clamp,
    "concatenate": lambda eqn, *parts: np.concatenate(parts, axis=eqn.params["dimension"]),
    "copy": _same,
    "copy_p": _same,
    "cummax": _cumulative(lax.max),
    "cummin": _cumulative(lax.min),
    "cumprod": _cumulative(lax.mul),
    "cumsum": _cumulative(lax.add),
    "dot_general": _dot_general,
    "expand_dims": _reshape,
    "iota": _iota,
    "optimization_barrier": lambda eqn, *values: list(values),
    "reduce_and": _reduction(partial(apply, lax.bitwise_and)),
    "reduce_max": _reduction(partial(apply, lax.max)),
    "reduce_min": _reduction(partial(apply, lax.min)),
    "reduce_or": _reduction(partial(apply, lax.bitwise_or)),
    "reduce_prod": _reduction(partial(apply, lax.mul)),
    "reduce_sum": _reduction(_sum),
    "reshape": _reshape,
    "reshard": _same,  # says where data lies, which is one place
    "rev": lambda eqn, x: np.flip(x, eqn.params["dimensions"]),
    "round": _round,
    "slice": _slice,
    "split": _split,
    "squeeze": _reshape,
    "stack": lambda eqn, *parts: np.stack(parts, axis=eqn.params["axis"]),
    "stop_gradient": _same,
    "tanh": _tanh,
    "transpose": lambda eqn, x: np.transpose(x, eqn.params["permutation"]),
    "unstack": _unstack,
}
