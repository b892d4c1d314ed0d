"""Run a function of one episode on many at once, number by number.

A function of small arrays is traced once and then evaluated so that each number in those arrays is a vector with one
entry for each of many episodes (`numbers`). `episodes` plays whole episodes like that; `in_one_kernel` does a part of a step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend.core import ClosedJaxpr, Jaxpr, Literal

from pcces.core.arrays import gpu_kernels
from pcces.engines.kernels.numbers import LANES, Numbers, UnsupportedError, as_numbers, numbers
from pcces.engines.kernels.rules import ELEMENTWISE, RULES, elementwise

Array = Any
# fmt: off
INLINED = frozenset((
    "pjit", "jit", "closed_call", "core_call", "custom_jvp_call", "custom_vjp_call", "remat", "checkpoint",
))
# fmt: on


def trace(function: Callable[..., Any], *shapes: Any) -> tuple[ClosedJaxpr, Any, frozenset[int]]:
    """The function as a program for `evaluate`, what its outputs are shaped like, and which inputs it uses.

    Raises UnsupportedError for loops that are not merely repeated, random numbers, and whatever else is not a sum, a product or the like.
    """
    closed, outputs = jax.make_jaxpr(function, return_shape=True)(*shapes)
    jaxpr = _without_dead(closed.jaxpr)
    _check(jaxpr)
    used = {v for eqn in jaxpr.eqns for v in eqn.invars if not isinstance(v, Literal)}
    used |= {v for v in jaxpr.outvars if not isinstance(v, Literal)}
    return ClosedJaxpr(jaxpr, closed.consts), outputs, frozenset(i for i, v in enumerate(jaxpr.invars) if v in used)


def evaluate(closed: ClosedJaxpr, *inputs: Numbers) -> list[Numbers]:
    """The outputs for inputs given number by number.

    >>> program, _, _ = trace(lambda a, b: a @ b, jnp.zeros((2, 2)), jnp.zeros(2))
    >>> a = numbers((2, 2), [jnp.ones(3), jnp.zeros(3), np.float32(2), np.float32(1)])
    >>> out = evaluate(program, a, as_numbers(np.array([5.0, 7.0], np.float32)))[0]
    >>> out[0].tolist(), float(out[1])
    ([5.0, 5.0, 5.0], 17.0)
    """
    return _run(closed.jaxpr, [as_numbers(np.asarray(c)) for c in closed.consts], inputs)


def in_one_kernel(function: Callable[..., Array], *inputs: Array, interpret: bool = False) -> Array:
    """function(*inputs), of small float32 arrays; on a GPU as one kernel, under `vmap` as one for all episodes.

    XLA would make a kernel of every few operations, and hundreds of operations on little data take as long as their
    kernels take to start. `interpret` runs the kernel on a CPU, for tests.

    >>> float(in_one_kernel(lambda a, b: (a * b).sum(), jnp.ones(3), jnp.arange(3.0)))
    3.0
    """
    if not interpret and not gpu_kernels():
        return function(*inputs)
    from jax.experimental import pallas as pl
    from jax.experimental.pallas import triton

    program, like, _ = trace(function, *inputs)

    def kernel(source: Any, target: Any) -> None:
        left = iter(range(source.shape[0]))
        parts = [numbers(a.shape, [source[next(left), :] for _ in range(a.size)]) for a in inputs]
        (result,) = evaluate(program, *parts)
        for i, value in enumerate(result.flat):
            target[i, :] = jnp.broadcast_to(jnp.float32(value), LANES)

    @jax.custom_batching.custom_vmap
    def columns(given: Array) -> Array:
        """The outputs (m, batch) for inputs (n, batch)."""
        batch = given.shape[1]
        made = pl.pallas_call(
            kernel,
            out_shape=jax.ShapeDtypeStruct((like.size, batch + -batch % LANES), jnp.float32),
            grid=(-(-batch // LANES),),
            in_specs=[pl.BlockSpec((given.shape[0], LANES), lambda i: (0, i))],
            out_specs=pl.BlockSpec((like.size, LANES), lambda i: (0, i)),
            interpret=interpret,
            compiler_params=triton.CompilerParams(num_warps=1, num_stages=1),
            name="one_kernel",
        )(jnp.pad(given, ((0, 0), (0, -batch % LANES))))
        return made[:, :batch]

    @columns.def_vmap
    def _side_by_side(axis_size: int, in_batched: list[bool], given: Array) -> tuple[Array, bool]:
        """Batches of batches are one batch."""
        made = columns(jnp.moveaxis(given, 0, 1).reshape(given.shape[1], -1))
        return jnp.moveaxis(made.reshape(like.size, axis_size, given.shape[2]), 1, 0), True

    given = jnp.concatenate([a.ravel() for a in inputs])
    return columns(given[:, None]).reshape(like.shape)


def _inner(eqn: Any) -> Jaxpr | ClosedJaxpr | None:
    return next((eqn.params[name] for name in ("jaxpr", "call_jaxpr", "fun_jaxpr") if name in eqn.params), None)


def _without_dead(jaxpr: Jaxpr) -> Jaxpr:
    """Leave out what no output needs, such as random keys that a task does not use."""
    needed = {v for v in jaxpr.outvars if not isinstance(v, Literal)}
    kept = []
    for eqn in reversed(jaxpr.eqns):
        if any(v in needed for v in eqn.outvars):
            kept.append(eqn)
            needed |= {v for v in eqn.invars if not isinstance(v, Literal)}
    return jaxpr.replace(eqns=kept[::-1])


def _check(jaxpr: Jaxpr) -> None:
    for eqn in jaxpr.eqns:
        name = eqn.primitive.name
        if name in INLINED:
            inner = _inner(eqn)
            assert inner is not None
            _check(inner.jaxpr if isinstance(inner, ClosedJaxpr) else inner)
        elif name == "scan":
            body = eqn.params["jaxpr"].jaxpr
            outside, inside = ([v.aval.shape for v in (*j.invars, *j.outvars)] for j in (eqn, body))
            if outside != inside:
                raise UnsupportedError("a loop over the rows of an array is not an operation on single numbers")
            _check(body)
        elif name not in ELEMENTWISE and name not in RULES:
            raise UnsupportedError(f"{name} is not an operation on single numbers")


def _run(jaxpr: Jaxpr, consts: Iterable[Numbers], inputs: Iterable[Numbers]) -> list[Numbers]:
    values: dict[Any, Numbers] = dict(zip(jaxpr.constvars, consts)) | dict(zip(jaxpr.invars, inputs, strict=True))

    def read(v: Any) -> Numbers:
        return as_numbers(np.asarray(v.val, getattr(v.aval, "dtype", None))) if isinstance(v, Literal) else values[v]

    for eqn in jaxpr.eqns:
        args, name = [read(v) for v in eqn.invars], eqn.primitive.name
        if name in INLINED:
            inner = _inner(eqn)
            if isinstance(inner, ClosedJaxpr):
                outs = _run(inner.jaxpr, [as_numbers(np.asarray(c)) for c in inner.consts], args)
            else:
                assert inner is not None
                outs = _run(inner, [], args)
        elif name == "scan":
            outs = _repeat(eqn, *args)
        elif name in RULES:
            out = RULES[name](eqn, *args)
            outs = out if isinstance(out, list) else [out]
        else:
            outs = [elementwise(eqn, *args)]
        values.update(zip(eqn.outvars, outs, strict=True))
    return [read(v) for v in jaxpr.outvars]


def _repeat(eqn: Any, *args: Numbers) -> list[Numbers]:
    """A scan without inputs, only a number of repetitions. Its result is the last carry."""
    constant, body = len(eqn.invars) - len(eqn.outvars), eqn.params["jaxpr"]
    shapes = [v.aval for v in eqn.invars[constant:]]
    size = max((np.shape(v) for a in args for v in a.flat), key=len)

    def packed(parts: Iterable[Numbers]) -> tuple[Array, ...]:
        """Each number as a vector; no truth values, which a loop on a GPU cannot hold."""
        kinds = [np.dtype(np.int32) if aval.dtype == np.bool_ else aval.dtype for aval in shapes]
        return tuple(
            jnp.broadcast_to(jnp.asarray(v).astype(kind), size) for a, kind in zip(parts, kinds) for v in a.flat
        )

    def unpacked(values: Iterable[Array]) -> list[Numbers]:
        left = iter(values)
        return [
            numbers(aval.shape, [v != 0 if aval.dtype == np.bool_ else v for v in islice(left, aval.size)])
            for aval in shapes
        ]

    def once(_: Array, values: tuple[Array, ...]) -> tuple[Array, ...]:
        return packed(
            _run(body.jaxpr, map(as_numbers, map(np.asarray, body.consts)), [*args[:constant], *unpacked(values)])
        )

    return unpacked(lax.fori_loop(0, eqn.params["length"], once, packed(args[constant:])))
