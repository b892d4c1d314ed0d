"""The bodies a policy drives: a point that slides and turns, and a car with two driven wheels.

An agent is its MJCF (own words for the original's dimensions), where it sits in the state, and what it feels.
"""

from __future__ import annotations

import math
from typing import ClassVar

_FELT = ("accelerometer", "velocimeter", "gyro", "magnetometer")
_SENSORS = "".join(f'\n      <{name} name="{name}" site="agent"/>' for name in _FELT)


class Agent:
    """What all agents share; a new one gives the class variables and ``pose``."""

    name: ClassVar[str]
    timestep: ClassVar[float]  # seconds of one physics step; an environment step takes ten
    density: ClassVar[float]  # of all geoms that do not say otherwise
    keepout: ClassVar[float] = 0.4
    bodies: ClassVar[str]
    actuators: ClassVar[str]
    sensors: ClassVar[str] = _SENSORS  # what the agent feels, in the order of the observation
    observation: ClassVar[dict[str, int]] = dict.fromkeys(_FELT, 3)  # their names and sizes

    def pose(self, x: float, y: float, angle: float) -> list[float]:
        """Return the joint positions of the agent at rest at (x, y), turned by ``angle``."""
        raise NotImplementedError


class Point(Agent):
    """A sphere with a nose: a force along its nose, and a turning speed.

    >>> Point().pose(0.5, -0.5, 1.0)
    [0.5, -0.5, 1.0]
    """

    name = "Point"
    timestep = 0.002
    density = 1.0
    bodies = """
      <body name="agent" pos="0 0 .1">
        <joint name="x" type="slide" axis="1 0 0" damping=".01"/>
        <joint name="y" type="slide" axis="0 1 0" damping=".01"/>
        <joint name="turn" type="hinge" axis="0 0 1" damping=".005"/>
        <site name="agent"/>
        <geom name="sphere" type="sphere" size=".1" friction="1 .01 .01" rgba=".74 .04 .18 1"/>
        <geom name="nose" type="box" size=".05 .05 .05" pos=".1 0 0" rgba="0 .15 .4 1"/>
      </body>"""
    actuators = """
      <motor name="thrust" site="agent" gear=".3 0 0 0 0 0" ctrlrange="-1 1" forcerange="-.05 .05"/>
      <velocity name="turn" jointinparent="turn" gear=".3" ctrlrange="-1 1" forcerange="-.05 .05"/>"""

    def pose(self, x: float, y: float, angle: float) -> list[float]:
        """Return (x, y, angle): in one model for all layouts the joints measure from the world's origin."""
        return [x, y, angle]


class Car(Agent):
    """A box on two driven wheels and a free ball; its actions are the torques of the left and the right wheel.

    >>> Car().observation["ballquat_rear"]
    9
    """

    name = "Car"
    timestep = 0.004
    density = 5.0
    bodies = """
      <body name="agent" pos="0 0 .1">
        <freejoint name="agent"/>
        <site name="agent"/>
        <geom name="chassis" type="box" size=".1 .1 .05" rgba=".74 .04 .18 1"/>
        <geom name="back" type="box" size=".1 .01 .05" pos="0 .15 0" rgba="0 .15 .4 1"/>
        <geom name="back_link" type="box" size=".01 .025 .03" pos="0 .125 0" rgba="0 .15 .4 1"/>
        <geom name="front" type="box" size=".05 .01 .05" pos="0 -.165 0" rgba="0 .15 .4 1"/>
        <geom name="front_link" type="box" size=".05 .03 .01" pos="0 -.13 .04" rgba="0 .15 .4 1"/>
        <body name="left" pos="-.1 .1 -.05">
          <joint name="left" axis="1 0 0" damping=".001"/>
          <geom name="left" type="cylinder" size=".05" fromto="-.055 0 0 -.005 0 0" rgba=".25 .25 .28 1"/>
        </body>
        <body name="right" pos=".1 .1 -.05">
          <joint name="right" axis="1 0 0" damping=".001"/>
          <geom name="right" type="cylinder" size=".05" fromto=".005 0 0 .055 0 0" rgba=".25 .25 .28 1"/>
        </body>
        <body name="rear" pos="0 -.1 -.05">
          <joint name="rear" type="ball" damping=".001"/>
          <geom name="rear" type="sphere" size=".05" rgba=".25 .25 .28 1"/>
        </body>
      </body>"""
    actuators = """
      <motor name="left" jointinparent="left" ctrlrange="-1 1" forcerange="-.02 .02"/>
      <motor name="right" jointinparent="right" ctrlrange="-1 1" forcerange="-.02 .02"/>"""
    # The ball's rotation matrix, row by row: its rows are the car's axes as the ball sees them.
    sensors = f"""{_SENSORS}
      <ballangvel name="ballangvel_rear" joint="rear"/>
      <framexaxis name="ball_x" objtype="xbody" objname="agent" reftype="xbody" refname="rear"/>
      <frameyaxis name="ball_y" objtype="xbody" objname="agent" reftype="xbody" refname="rear"/>
      <framezaxis name="ball_z" objtype="xbody" objname="agent" reftype="xbody" refname="rear"/>"""
    observation: ClassVar[dict[str, int]] = {**Agent.observation, "ballangvel_rear": 3, "ballquat_rear": 9}

    def pose(self, x: float, y: float, angle: float) -> list[float]:
        """Return position and quaternion of the chassis, two wheel angles and the ball's quaternion."""
        return [x, y, 0.1, math.cos(angle / 2), 0.0, 0.0, math.sin(angle / 2), 0.0, 0.0, 1.0, 0.0, 0.0, 0.0]


AGENTS: dict[str, type[Agent]] = {agent.name: agent for agent in (Point, Car)}
