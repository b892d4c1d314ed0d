"""What a GPU would be asked to do, on a machine that has none."""

import jax
from jax.sharding import AbstractDevice, AbstractMesh, AxisType


def lowered(function, *shapes):
    """The program for a GPU as text."""
    device = AbstractDevice(device_kind="NVIDIA H100 80GB HBM3", num_cores=None, platform="gpu")
    mesh = AbstractMesh((1,), ("x",), (AxisType.Auto,), abstract_device=device)
    with jax.sharding.use_abstract_mesh(mesh):
        return jax.jit(function).trace(*shapes).lower(lowering_platforms=("cuda",)).as_text()
