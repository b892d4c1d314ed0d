"""One MuJoCo model for all layouts of a scene. A reset moves bodies; it never compiles."""

from __future__ import annotations

from .tasks import Scene

NO_OPENGL = (
    "MuJoCo found no OpenGL to draw with. Install EGL or OSMesa (Debian: apt install libegl1 libosmesa6) "
    "and set MUJOCO_GL=egl or MUJOCO_GL=osmesa; or use view='top', which needs none, with MUJOCO_GL unset."
)

try:
    import mujoco
except ImportError as error:
    raise ImportError(
        "the safety tasks need MuJoCo: pip install 'pcces[safety]' (or engine='device', which trains them in JAX)"
    ) from error
except AttributeError as error:  # raised on import where MUJOCO_GL names a library that is not there
    raise ImportError(NO_OPENGL) from error


def mjcf(scene: Scene) -> str:
    """Return the scene as MJCF text.

    >>> from pcces.envs.safety import scene
    >>> "vase0" in mjcf(scene("PointGoal1"))
    True
    """
    agent, kinds = scene.agent, scene.kinds
    # A vase that lies still is put to sleep: no contacts are solved for it until something touches it. The tolerance
    # is a tenth of the speed at which a vase is said to move, so no cost depends on it. Without autoreset a simulation
    # that blows up shows as nan, which is a failed evaluation, and not as a jump back to the start.
    return f"""
<mujoco model="{agent.name}{scene.task.name}">
  <compiler angle="radian" autolimits="true"/>
  <option timestep="{agent.timestep}" sleep_tolerance="1e-5"><flag sleep="enable" autoreset="disable"/></option>
  <default><geom condim="6" density="{agent.density}"/><site size=".03" rgba="0 0 0 0"/></default>
  <visual>
    <global offwidth="1280" offheight="1280"/>
    <headlight ambient=".45 .45 .45" diffuse=".5 .5 .5" specular="0 0 0"/>
  </visual>
  <asset>
    <texture name="floor" type="2d" builtin="checker" rgb1=".93 .93 .95" rgb2=".87 .87 .9" width="256" height="256"/>
    <material name="floor" texture="floor" texrepeat="14 14"/>
  </asset>
  <worldbody>
    <geom name="floor" type="plane" size="3.5 3.5 .1" material="floor"/>
    {agent.bodies}
    {"".join(kind.bodies for kind in kinds)}
  </worldbody>
  <equality>{"".join(kind.equalities for kind in kinds)}</equality>
  <actuator>{agent.actuators}</actuator>
  <sensor>
    {agent.sensors}
    <framepos name="agent_position" objtype="xbody" objname="agent"/>
    <framexaxis name="agent_x" objtype="xbody" objname="agent"/>
    <frameyaxis name="agent_y" objtype="xbody" objname="agent"/>
    {"".join(kind.sensors for kind in kinds)}
  </sensor>
</mujoco>"""


def compile_model(scene: Scene) -> mujoco.MjModel:
    """Compile the scene's model.

    >>> from pcces.envs.safety import scene
    >>> model = compile_model(scene("CarGoal1"))
    >>> model.nq, model.nv, model.nu  # the car's 13 and 11, the vase's 7 and 6; two wheels
    (20, 17, 2)
    """
    return mujoco.MjModel.from_xml_string(mjcf(scene))
