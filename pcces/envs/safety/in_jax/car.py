"""The car: a box on two driven wheels and a ball, and what it feels. MuJoCo's equations, written out for this one body.

Wheels and ball are round, so the mass of the whole is spread in the same way however far they have turned: in the
chassis's frame the equations of motion are those of one rigid body with three rotors in it. The floor pushes at five
points at most, two a wheel and one under the ball. MuJoCo's contacts are soft: the accelerations minimise

    1/2 |u - free|^2 in the norm of the masses  +  1/2 softness^-1 sum over edges of max(0, wanted - got)^2,

where a contact has ten edges, the normal leaning either way towards each of two slides and three rotations (its friction
cone is a pyramid). That is convex and piecewise quadratic, and Newton's method ends after a few steps.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from pcces.engines.kernels.programs import in_one_kernel
from pcces.envs.draw import BLUE, INK, RED, Canvas

from ..agents import Car
from .contact import DAMPING, STIFFNESS, impedance
from .point import FIELD, GRAVITY, SUBSTEPS, VASE_REACH

Array = Any
H = Car.timestep
FORCE, DAMP = 0.02, 0.001  # of a motor at most, and of every joint
RADIUS, WIDTH = 0.05, 0.025  # of wheels and ball; half a wheel's width
WHEELS = np.array([[-0.13, 0.1, -0.05], [0.13, 0.1, -0.05]])  # the middles of the wheels
BALL = np.array([0.0, -0.1, -0.05])
BOXES = (  # half sizes and middles
    ((0.1, 0.1, 0.05), (0.0, 0.0, 0.0)),
    ((0.1, 0.01, 0.05), (0.0, 0.15, 0.0)),
    ((0.01, 0.025, 0.03), (0.0, 0.125, 0.0)),
    ((0.05, 0.01, 0.05), (0.0, -0.165, 0.0)),
    ((0.05, 0.03, 0.01), (0.0, -0.13, 0.04)),
)
HEIGHT = 0.1  # of the middle of the chassis when all wheels touch the floor
OUTLINE = (((-0.155, 0.05), (0.155, 0.16)), ((-0.1, -0.1), (0.1, 0.15)), ((-0.05, -0.175), (0.05, -0.1)))  # from above
# Friction along x and y, and against turning around x, y and z.
LEAN = np.array([1.0, 1.0, 0.0, 0.0001, 0.0001, 0.005])
NEWTON = 8  # steps, from where the last physics step ended; MuJoCo takes about four, and up to eight


def _masses() -> tuple[float, np.ndarray, np.ndarray, float, float, np.ndarray]:
    """Mass, centre, inertia of all that does not turn by itself, that of a wheel and of the ball, and by what contacts are scaled."""
    parts = []
    for half, middle in BOXES:
        mass = Car.density * 8 * math.prod(half)
        squares = np.square(half)
        parts.append((mass, np.array(middle), mass / 3 * (squares.sum() - squares)))
    wheel, ball = Car.density * math.pi * RADIUS**2 * 2 * WIDTH, Car.density * 4 / 3 * math.pi * RADIUS**3
    across = wheel * (RADIUS**2 / 4 + WIDTH**2 / 3)
    parts += [(wheel, middle, np.array([0.0, across, across])) for middle in WHEELS]
    parts.append((ball, BALL, np.zeros(3)))
    total = math.fsum(mass for mass, _, _ in parts)
    centre = np.sum([mass * at for mass, at, _ in parts], axis=0) / total
    inertia = np.zeros((3, 3))
    for mass, at, own in parts:
        r = at - centre
        inertia += np.diag(own) + mass * (r @ r * np.eye(3) - np.outer(r, r))

    def yields(at: np.ndarray) -> float:  # the mean acceleration per unit of force, over the directions
        lever = np.cross(np.eye(3), at - centre)
        return float(1 / total + np.trace(lever @ np.linalg.inv(inertia) @ lever.T) / 3)

    weights = np.array([yields(WHEELS[0])] * 4 + [yields(BALL)])
    return total, centre, inertia, wheel * RADIUS**2 / 2, 0.4 * ball * RADIUS**2, weights


MASS, CENTRE, INERTIA, WHEEL, SPHERE, WEIGHTS = _masses()


class Body(NamedTuple):
    """How the car moves."""

    place: Array  # (3,) of the middle of the chassis
    turn: Array  # (4,) its quaternion
    velocity: Array  # (3,) in the world's axes
    spin: Array  # (3,) around the chassis's axes
    wheels: Array  # (2,) around the axle, beside the chassis
    roll: Array  # (3,) of the ball beside the chassis, around the chassis's axes
    ball: Array  # (4,) the ball's quaternion beside the chassis
    last: Array  # (11,) accelerations at the end of the last step, as Newton's method has them


SIZES = (3, 4, 3, 3, 2, 3, 4, 11)
SIZE = sum(SIZES)


def unpacked(state: Array) -> Body:
    """The car in the first numbers of a state."""
    return Body(*jnp.split(state[:SIZE], np.cumsum(SIZES)[:-1].tolist()))


def moved(state: Array, control: Array) -> Array:
    """The car (SIZE,) ten physics steps later."""

    def physics(i: Array, body: Body) -> Body:
        after = integrated(body)
        # First the control is new, then time passes.
        body = Body(*(jnp.where(i == 0, old, new) for old, new in zip(body, after)))
        return body._replace(last=accelerations(body, control))

    return jnp.concatenate(jax.lax.fori_loop(0, SUBSTEPS + 1, physics, unpacked(state)))


# -- what moves it -----------------------------------------------------------------------------------------------------
# A motion is 11 numbers in the world's axes: of the centre of mass (3), the spin of the chassis (3), that of the wheels
# beside the chassis (2), and that of the ball (3), its own and not beside the chassis.


def accelerations(body: Body, control: Array) -> Array:
    """The accelerations (11,), with the floor's forces."""
    matrix = rotation(body.turn)
    axle, spin = matrix[:, 0], matrix @ body.spin
    centre, inertia = matrix @ _like(CENTRE, spin), matrix @ _like(INERTIA, spin) @ matrix.T
    roll = matrix @ body.roll
    masses = mass_matrix(inertia, axle)

    torque = jnp.clip(control, -FORCE, FORCE) - DAMP * body.wheels
    gyroscopic = cross(spin, inertia @ spin + WHEEL * (2 * axle @ spin + body.wheels.sum()) * axle)
    forces = jnp.concatenate(
        [
            MASS * (_like([0.0, 0.0, -GRAVITY], spin) - cross(spin, cross(spin, centre))),
            DAMP * roll - gyroscopic,
            torque,
            -DAMP * roll - SPHERE * cross(spin, roll),
        ]
    )
    velocity = jnp.concatenate([body.velocity + cross(spin, centre), spin, body.wheels, spin + roll])
    jacobian, hard, wanted = floor(body.place[2] + centre[2], matrix, velocity)

    def newton(_: Array, u: Array) -> Array:
        force, answer = pushes(wanted - jacobian @ u, hard)
        gradient = forces - masses @ u + jnp.einsum("kia,ki->a", jacobian, force)
        return u + solved(masses + jnp.einsum("kia,kij,kjb->ab", jacobian, answer, jacobian), gradient)

    return jax.lax.fori_loop(0, NEWTON, newton, body.last)


def mass_matrix(inertia: Array, axle: Array) -> Array:
    """The mass matrix (11, 11)."""
    eye = np.eye(3)
    spin = inertia + 2 * WHEEL * axle[:, None] * axle
    wheels = WHEEL * axle[:, None] * _like([[1.0, 1.0]], axle)
    zero = _like(np.zeros((3, 3)), axle)
    return block(
        [_like(MASS * eye, axle), zero, zero[:, :2], zero],
        [zero, spin, wheels, zero],
        [zero[:2], wheels.T, _like(WHEEL * np.eye(2), axle), zero[:2]],
        [zero, zero, zero[:, :2], _like(SPHERE * eye, axle)],
    )


def floor(height: Array, matrix: Array, velocity: Array) -> tuple[Array, Array, Array]:
    """The five points at which the floor may push: how they move (5, 6, 11), namely where to and how they turn; the force
    per unit of acceleration that is missing (5,), 0 in the air; and the accelerations that are asked for (5, 6)."""
    axle, middles = matrix[:, 0], [matrix @ _like(at - CENTRE, matrix) for at in (*WHEELS, BALL)]
    up = _like([0.0, 0.0, 1.0], matrix)
    down = axle * axle[2] - up
    down = down * (RADIUS / jnp.sqrt((down**2).sum()))
    eye, zero = _like(np.eye(3), matrix), _like(np.zeros((3, 3)), matrix)
    rows: list[Array] = []
    depths: list[Array] = []
    for wheel, middle in enumerate(middles[:2]):
        for end in (-WIDTH, WIDTH):
            point = middle + end * axle + down
            depth = -(height + point[2])
            point = point + 0.5 * depth * up  # a contact is half way between the surfaces
            lever = cross(axle, point - middle)
            own = _like(np.eye(2)[wheel], matrix)
            slide = [eye, around(point), lever[:, None] * own, zero]
            twist = [zero, eye, axle[:, None] * own, zero]
            rows, depths = [*rows, block(slide, twist)], [*depths, depth]
    depth = RADIUS - height - middles[2][2]
    slide = [eye, around(middles[2]), zero[:, :2], around((0.5 * depth - RADIUS) * up)]
    twist = [zero, zero, zero[:, :2], eye]
    rows, depths = [*rows, block(slide, twist)], [*depths, depth]

    jacobian, depth = jnp.stack(rows), jnp.stack(depths)
    share = impedance(depth)
    hard = jnp.where(depth > 0, share / (1 - share) / _like(4 * WEIGHTS, depth), 0.0)
    spring = (STIFFNESS * share * depth)[:, None] * _like(np.eye(6)[2], depth)
    return jacobian, hard, spring - DAMPING * (jacobian @ velocity)


def pushes(missing: Array, hard: Array) -> tuple[Array, Array]:
    """The floor's forces and torques (5, 6) where these accelerations (5, 6) are missing, and how they change (5, 6, 6)."""
    lean = _like(LEAN, missing) * missing
    normal = missing[:, 2:3]
    hard = hard[:, None] * _like(LEAN > 0, missing)
    plus, minus = jnp.where(normal + lean > 0, hard, 0.0), jnp.where(normal - lean > 0, hard, 0.0)
    both, odd = plus + minus, _like(LEAN, missing) * (plus - minus)
    up = _like(np.eye(6)[2], missing)
    force = _like(LEAN, missing) * (plus * (normal + lean) - minus * (normal - lean))
    force = force + up * (both * normal + odd * missing).sum(1, keepdims=True)
    straight = _like(LEAN**2, missing) * both + up * both.sum(1, keepdims=True)
    answer = _like(np.eye(6), missing) * straight[:, None, :] + up[:, None] * odd[:, None, :] + odd[:, :, None] * up
    return force, answer


def integrated(body: Body) -> Body:
    """One physics step with these accelerations; the joints' damping is implicit, as MuJoCo's is."""
    matrix, u = rotation(body.turn), body.last
    axle, inertia = matrix[:, 0], matrix @ _like(INERTIA, u) @ matrix.T
    masses = mass_matrix(inertia, axle)
    damped = solved(masses + H * DAMP * _resistance(u), masses @ u)
    centre = matrix @ _like(CENTRE, u)
    spin = matrix.T @ damped[3:6]
    velocity = body.velocity + H * (damped[:3] - cross(damped[3:6], centre))
    turning = body.spin + H * spin
    roll = body.roll + H * (matrix.T @ damped[8:] - spin)
    return Body(
        body.place + H * velocity,
        rotated(body.turn, turning),
        velocity,
        turning,
        body.wheels + H * damped[6:8],
        roll,
        rotated(body.ball, rotation(body.ball).T @ roll),
        u,
    )


def _resistance(u: Array) -> Array:
    """What the joints resist: turning of the wheels, and of the ball beside the chassis."""
    beside = np.zeros((5, 11))
    beside[:2, 6:8], beside[2:, 8:], beside[2:, 3:6] = np.eye(2), np.eye(3), -np.eye(3)
    return _like(beside.T @ beside, u)


# -- what it feels -----------------------------------------------------------------------------------------------------


def felt(body: Body) -> Array:
    """What accelerometer, velocimeter, gyro and magnetometer say, then how the ball turns, and its rotation matrix (24,)."""
    matrix, ball = rotation(body.turn), rotation(body.ball)
    centre = matrix @ _like(CENTRE, body.last)
    acceleration = body.last[:3] - cross(body.last[3:6], centre) + _like([0.0, 0.0, GRAVITY], body.last)
    return jnp.concatenate(
        [
            matrix.T @ acceleration,
            matrix.T @ body.velocity,
            body.spin,
            -FIELD * matrix[1],
            ball.T @ body.roll,
            ball.reshape(-1),
        ]
    )


class CarDriver:
    """The car among things that do not push back: a vase weighs a four-thousandth of it."""

    size = SIZE

    @staticmethod
    def start(place: Array, angle: Array) -> Array:
        """At rest, not yet let down onto the floor."""
        turn = jnp.stack([jnp.cos(angle / 2), 0.0 * angle, 0.0 * angle, jnp.sin(angle / 2)])
        rest = np.zeros(SIZE - 7)
        rest[-SIZES[-1] - 4], rest[-SIZES[-1] + 2] = 1.0, -GRAVITY
        return jnp.concatenate([place, _like([HEIGHT], place), turn, _like(rest, place)])

    @staticmethod
    def moved(state: Array, control: Array) -> Array:
        """Ten physics steps later."""
        return in_one_kernel(moved, state, control)

    @staticmethod
    def felt(state: Array) -> Array:
        """What the sensors say."""
        return felt(unpacked(state))

    @staticmethod
    def seen(state: Array, places: Array) -> tuple[Array, Array]:
        """Places (n, 2) on the floor, in the car's frame."""
        body = unpacked(state)
        matrix = rotation(body.turn)
        seen = (places - body.place[:2]) @ matrix[:2, :2] - body.place[2] * matrix[2, :2]
        return seen[:, 0], seen[:, 1]

    @staticmethod
    def shoved(state: Array, vases: Array) -> Array:
        """Vases where the car leaves them: pushed out of its outline."""
        body = unpacked(state)
        along = rotation(body.turn)[:2, 0]
        along = along / jnp.sqrt((along**2).sum())
        frame = jnp.stack([along, jnp.stack([-along[1], along[0]])], axis=1)
        own = (vases - body.place[:2]) @ frame
        for low, high in OUTLINE:
            nearest = jnp.clip(own, _like(low, own), _like(high, own))
            offset = own - nearest
            distance = jnp.sqrt((offset**2).sum(-1, keepdims=True) + 1e-12)
            own = nearest + offset * jnp.maximum(1.0, VASE_REACH / distance)
        return own @ frame.T + body.place[:2]

    @staticmethod
    def draw(canvas: Canvas, state: np.ndarray, violates: bool) -> None:
        """Add the car to a picture: red while it violates something."""
        w, _, _, z = state[3:7]
        angle = 2 * math.atan2(z, w)
        cos, sin = math.cos(angle), math.sin(angle)
        for (low, high), colour in zip(OUTLINE, (INK, RED if violates else BLUE, INK)):
            corners = [(low[0], low[1]), (high[0], low[1]), (high[0], high[1]), (low[0], high[1])]
            canvas.polygon([(state[0] + cos * x - sin * y, state[1] + sin * x + cos * y) for x, y in corners], colour)


# -- vectors and matrices ----------------------------------------------------------------------------------------------


def _like(values: Any, other: Array) -> Array:
    return jnp.asarray(np.asarray(values), other.dtype)


def block(*rows: list[Array]) -> Array:
    """A matrix from its blocks."""
    return jnp.concatenate([jnp.concatenate(row, axis=1) for row in rows])


def cross(a: Array, b: Array) -> Array:
    """The cross product."""
    return jnp.stack([a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]])


def around(r: Array) -> Array:
    """The matrix (3, 3) that takes an angular velocity to the velocity at r."""
    zero = _like(0.0, r)
    return jnp.stack([zero, r[2], -r[1], -r[2], zero, r[0], r[1], -r[0], zero]).reshape(3, 3)


def rotation(q: Array) -> Array:
    """The matrix (3, 3) of a quaternion."""
    w, x, y, z = q[0], q[1], q[2], q[3]
    rows = [
        w * w + x * x - y * y - z * z, 2 * (x * y - w * z), 2 * (x * z + w * y),
        2 * (x * y + w * z), w * w - x * x + y * y - z * z, 2 * (y * z - w * x),
        2 * (x * z - w * y), 2 * (y * z + w * x), w * w - x * x - y * y + z * z,
    ]  # fmt: skip
    return jnp.stack(rows).reshape(3, 3)


def rotated(q: Array, spin: Array) -> Array:
    """The quaternion a physics step later, turning around its own axes."""
    speed = jnp.sqrt((spin**2).sum() + 1e-20)
    w, x, y, z = q[0], q[1], q[2], q[3]
    d, (a, b, c) = jnp.cos(0.5 * H * speed), jnp.sin(0.5 * H * speed) / speed * spin
    q = jnp.stack(
        [
            w * d - x * a - y * b - z * c,
            w * a + x * d + y * c - z * b,
            w * b - x * c + y * d + z * a,
            w * c + x * b - y * a + z * d,
        ]
    )
    return q / jnp.sqrt((q**2).sum())


def solved(matrix: Array, right: Array) -> Array:
    """The solution of a small system with a positive definite matrix, of which only the upper triangle is read."""
    rows: list[Array] = []
    pivots: list[Array] = []
    values: list[Array] = []
    for _ in range(len(right) - 1):
        pivot, value, row = matrix[0, 0], right[0], matrix[0, 1:] / matrix[0, 0]
        rows, pivots, values = [*rows, row], [*pivots, pivot], [*values, value]
        right, matrix = right[1:] - row * value, matrix[1:, 1:] - row[:, None] * matrix[0, 1:]
    solution = right / matrix[0]
    for pivot, value, row in zip(pivots[::-1], values[::-1], rows[::-1]):
        solution = jnp.concatenate([(value / pivot - row @ solution)[None], solution])
    return solution
