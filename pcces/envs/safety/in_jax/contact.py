"""How the point bumps into buttons and gremlins: MuJoCo's soft contacts in the plane.

All that is solid here meets at one height, so a contact is one of a disc or a square with another. A button stands
fast; the point's sphere and its nose can touch one each. A gremlin keeps its heading and is drawn to its lead by a
spring and a damper; it pushes the point at the sphere or at the nose, whichever is deeper in.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp

from .point import AHEAD, NOSE, RADIUS, Triple, added, forces, response, seen_from, turned

Array = Any
Pair = tuple[Array, Array]
SIZE = 0.1  # of buttons and gremlins: of another one they would meet the point at another height
# MuJoCo's defaults: a constraint asks for the acceleration STIFFNESS * impedance * depth - DAMPING * speed, and gets the
# share `impedance` of it, which grows from the first number to the second over a depth of WIDTH metres.
IMPEDANCE, WIDTH, TIME = (0.9, 0.95), 0.001, 0.02
DAMPING, STIFFNESS = 2 / (IMPEDANCE[1] * TIME), 1 / (IMPEDANCE[1] * TIME) ** 2
POINT_WEIGHT = 128.48  # the inverse mass of the point by which MuJoCo scales how soft its contacts are
GREMLIN_WEIGHT = 1 / (0.001 * (2 * SIZE) ** 3)  # the inverse mass of a gremlin
OVERDAMPED = 1.5  # the weld between a gremlin and its lead
# To others a welded gremlin seems heavier than it is: the weld takes its share of any acceleration.
GREMLIN_YIELDS = (1 - IMPEDANCE[1]) * GREMLIN_WEIGHT
STRAIGHT = 8  # edges of the friction pyramid along the normal, beside the two that lean to the sides
SWEEPS = 2  # over the contacts with buttons, sphere and nose in turn
CORNERS = 2.0  # points in which two boxes meet: one to four in MuJoCo


class Touch(NamedTuple):
    """Contacts with n objects, in the point's frame; each (n,)."""

    depth: Array  # how deep they are in each other; not positive: apart
    normal_x: Array  # the way the point is pushed
    normal_y: Array
    x: Array  # where
    y: Array
    points: Array  # in how many places


class Near(NamedTuple):
    """What the point may bump into during a step. Things keep so far apart that there can be no more than these."""

    button: Array  # (2,) the place of the one nearest to the sphere
    other: Array  # (2,) and to the nose, maybe the same
    gremlin: Array  # (2,) the place of the nearest gremlin,
    drift: Array  # (2,) its velocity,
    centre: Array  # (2,) the middle of its circle,
    heading: Array  # () its heading,
    which: Array  # (g,) and which it is
    on_nose: Triple  # the force of `other` on the nose in the physics step before, to start from


def touch_button(pose: Array, place: Array) -> Touch:
    """The point's contact with a button at `place` (..., 2), the deeper one of its sphere and its nose."""
    x, y = seen_from(pose, place)
    return deeper(sphere_with_disc(x, y), nose_with_disc(x, y))


def touch_gremlin(pose: Array, place: Array, heading: Array) -> Touch:
    """The point's contact with a gremlin."""
    return with_squares(*seen_from(pose, place), jnp.cos(heading - pose[2]), jnp.sin(heading - pose[2]))


def bumps(pose: Array, velocity: Array, control: Array, near: Near, ahead: Array) -> tuple[Triple, Triple, Array]:
    """The force of contacts on the point, the part of it by a button on its nose, and the gremlin's acceleration (2,)."""

    def mine(vector: Array) -> Pair:
        return turned(pose[2], vector[0], vector[1])

    own, free = (*mine(velocity), velocity[2]), response(*forces(pose, velocity, control))
    pulled = led(near.gremlin, near.drift, near.centre + ahead)
    sphere, nose = sphere_with_disc(*seen_from(pose, near.button)), nose_with_disc(*seen_from(pose, near.other))
    on_nose = near.on_nose
    for _ in range(SWEEPS):
        on_sphere = push(sphere, own, added(free, response(*on_nose)))
        on_nose = push(nose, own, added(free, response(*on_sphere)))
    gremlin = touch_gremlin(pose, near.gremlin, near.heading)
    by_gremlin = push(gremlin, own, free, mine(near.drift), mine(pulled), GREMLIN_WEIGHT)
    reaction = jnp.stack(turned(-pose[2], by_gremlin[0], by_gremlin[1]))
    return added(added(on_sphere, on_nose), by_gremlin), on_nose, pulled - GREMLIN_YIELDS * reaction


def sphere_with_disc(x: Array, y: Array, size: float = SIZE) -> Touch:
    """The contact of the point's sphere with a disc of radius `size` at (x, y)."""
    distance = jnp.sqrt(x**2 + y**2 + 1e-12)
    depth, nx, ny = RADIUS + size - distance, -x / distance, -y / distance
    middle = depth / 2 - RADIUS
    return Touch(depth, nx, ny, middle * nx, middle * ny, jnp.ones_like(x))


def nose_with_disc(x: Array, y: Array, size: float = SIZE) -> Touch:
    """The contact of the point's nose with a disc."""
    near_x, near_y = jnp.clip(x, AHEAD - NOSE, AHEAD + NOSE), jnp.clip(y, -NOSE, NOSE)
    distance = jnp.sqrt((near_x - x) ** 2 + (near_y - y) ** 2 + 1e-12)
    depth, nx, ny = size - distance, (near_x - x) / distance, (near_y - y) / distance
    return Touch(depth, nx, ny, near_x + nx * depth / 2, near_y + ny * depth / 2, jnp.ones_like(x))


def with_squares(x: Array, y: Array, cos: Array, sin: Array, size: float = SIZE) -> Touch:
    """The point's contacts with squares of half-width `size` at (x, y), headed along (cos, sin)."""
    own_x, own_y = -cos * x - sin * y, sin * x - cos * y  # the sphere as a square sees it
    away_x, away_y = own_x - jnp.clip(own_x, -size, size), own_y - jnp.clip(own_y, -size, size)
    distance = jnp.sqrt(away_x**2 + away_y**2 + 1e-12)
    nx, ny = (cos * away_x - sin * away_y) / distance, (sin * away_x + cos * away_y) / distance
    sphere = Touch(RADIUS - distance, nx, ny, -RADIUS * nx, -RADIUS * ny, jnp.ones_like(x))

    # Two squares touch unless an axis of one of them separates them; the axis with the least overlap is the normal.
    nose_x = AHEAD - x
    breadth = jnp.abs(cos) + jnp.abs(sin)
    depth, nx, ny = jnp.full_like(x, jnp.inf), jnp.zeros_like(x), jnp.zeros_like(x)
    for reach, offset, axis_x, axis_y in (
        (NOSE + size * breadth, nose_x, 1.0, 0.0),
        (NOSE + size * breadth, -y, 0.0, 1.0),
        (size + NOSE * breadth, cos * nose_x - sin * y, cos, sin),
        (size + NOSE * breadth, -cos * y - sin * nose_x, -sin, cos),
    ):
        overlap, side = reach - jnp.abs(offset), jnp.sign(offset)
        less = overlap < depth
        nx, ny = jnp.where(less, side * axis_x, nx), jnp.where(less, side * axis_y, ny)
        depth = jnp.minimum(depth, overlap)
    nose = Touch(depth, nx, ny, AHEAD - NOSE * nx, -NOSE * ny, jnp.full_like(x, CORNERS))
    return deeper(sphere, nose)


def deeper(a: Touch, b: Touch) -> Touch:
    """Contact by contact the deeper one."""
    return Touch(*(jnp.where(a.depth > b.depth, of_a, of_b) for of_a, of_b in zip(a, b)))


def impedance(depth: Array) -> Array:
    """The share of what it asks for that a contact so deep gets."""
    into = jnp.clip(depth / WIDTH, 0.0, 1.0)
    into = jnp.where(into < 0.5, 2 * into**2, 1 - 2 * (1 - into) ** 2)
    return IMPEDANCE[0] + (IMPEDANCE[1] - IMPEDANCE[0]) * into


def push(
    touch: Touch,
    own: Triple,
    free: Triple,
    velocity: Pair = (0.0, 0.0),
    acceleration: Pair = (0.0, 0.0),
    weight: float = 0.0,
) -> Triple:
    """The force of a contact on the point.

    `own` is the point's velocity and `free` its acceleration without this contact; `velocity` and `acceleration` are
    those of the object, and `weight` its inverse mass, 0 for what stands fast. All in the point's frame.
    """
    depth, nx, ny, x, y, points = touch

    def split(moves: Triple) -> Pair:
        """A motion of the point at the contact, along the normal and the tangent (-ny, nx)."""
        a, b = moves[0] - moves[2] * y, moves[1] + moves[2] * x
        return nx * a + ny * b, nx * b - ny * a

    # How the point answers to a unit of force at the contact, along the normal and along the tangent.
    normal, mixed = split(response(nx, ny, x * ny - y * nx))
    _, tangent = split(response(-ny, nx, x * nx + y * ny))
    speed_n, speed_t = split((own[0] - velocity[0], own[1] - velocity[1], own[2]))
    free_n, free_t = split((free[0] - acceleration[0], free[1] - acceleration[1], free[2]))

    share = impedance(depth)
    softness = 4 * (1 - share) / share * (POINT_WEIGHT + weight) / points
    wanted_n = STIFFNESS * share * depth - DAMPING * speed_n - free_n
    wanted_t = -DAMPING * speed_t - free_t
    yields = (1 - IMPEDANCE[1]) * weight
    force_n, force_t = _cone(wanted_n, wanted_t, normal + yields, tangent + yields, mixed, softness)
    force_n, force_t = jnp.where(depth > 0, force_n, 0.0), jnp.where(depth > 0, force_t, 0.0)
    along, across = force_n * nx - force_t * ny, force_n * ny + force_t * nx
    return along, across, x * across - y * along


def _cone(wanted_n: Array, wanted_t: Array, n: Array, t: Array, mixed: Array, softness: Array) -> Pair:
    """The force of one contact, along the normal and the tangent, that leads to the wanted accelerations or near them.

    n, t and mixed are the accelerations per unit of force. MuJoCo's cone of friction 1 is a pyramid, with a force along
    each edge: what is still wanted along that edge, divided by the softness, if positive. In the plane two edges are
    normal + tangent and normal - tangent, the rest are the normal. So either all edges push, or all but one of the two,
    or the other one alone.
    """
    stiff_n, stiff_t = n + softness / (STRAIGHT + 2), t + softness / 2
    determinant = stiff_n * stiff_t - mixed**2
    all_n = (stiff_t * wanted_n - mixed * wanted_t) / determinant
    all_t = (stiff_n * wanted_t - mixed * wanted_n) / determinant
    sticks = all_n > (STRAIGHT / 2 + 1) * jnp.abs(all_t)

    side = jnp.where(all_t > 0, 1.0, -1.0)
    wanted_e, link = wanted_n + side * wanted_t, n + side * mixed
    edge, straight = n + t + 2 * side * mixed + softness, STRAIGHT * n + softness
    determinant = edge * straight - STRAIGHT * link**2
    lean = (straight * wanted_e - STRAIGHT * link * wanted_n) / determinant
    upright = (edge * wanted_n - link * wanted_e) / determinant
    alone = upright <= 0
    lean = jnp.where(alone, jnp.maximum(wanted_e / edge, 0.0), lean)
    upright = jnp.where(alone, 0.0, upright)
    return jnp.where(sticks, all_n, lean + STRAIGHT * upright), jnp.where(sticks, all_t, side * lean)


def led(place: Array, velocity: Array, lead: Array) -> Array:
    """The acceleration (n, 2) of gremlins towards their leads."""
    stiffness = STIFFNESS / OVERDAMPED**2 * IMPEDANCE[1]
    return IMPEDANCE[1] * (stiffness * (lead - place) - DAMPING * velocity)
