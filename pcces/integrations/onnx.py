"""A policy as an ONNX model; needs the extra `export`, which is the package `onnx` alone."""

from __future__ import annotations

from typing import Any

import numpy as np

from pcces.integrations.export import Exported

OPSET, IR = 17, 8  # of 2022: any runtime of today reads them


def onnx_model(policy: Exported, about: dict[str, str]) -> bytes:
    """The bytes of a model with the input `observation` (N, size), float32, and outputs by their names.

    `action` is the likeliest action, inside the box: (N, size) float32, or (N,) int64 where it is a choice. Drawn ones come
    from `mean` and `std` (N, size), and are then clipped to the box, or from `logits` (N, choices).
    """
    try:
        import onnx
        from onnx import TensorProto, helper, numpy_helper
    except ImportError as error:
        raise ImportError("an ONNX model needs the extra export: pip install 'pcces[export]'") from error
    constants: list[Any] = []
    nodes: list[Any] = []

    def constant(name: str, value: Any, kind: Any = np.float32) -> str:
        constants.append(numpy_helper.from_array(np.asarray(value, dtype=kind), name))
        return name

    def apply(operation: str, inputs: list[str], output: str, **attributes: Any) -> str:
        nodes.append(helper.make_node(operation, inputs, [output], name=f"{operation}_{output}", **attributes))
        return output

    h = apply("Sub", ["observation", constant("observation_mean", policy.mean)], "centred")
    h = apply("Div", [h, constant("observation_std", policy.std)], "scaled")
    h = apply("Clip", [h, constant("least", -policy.clip), constant("most", policy.clip)], "normalised")
    for number, (weights, bias) in enumerate(policy.layers):
        h = apply("Tanh", [h], f"hidden_{number}") if number else h
        last = number == len(policy.layers) - 1
        name = "logits" if last and policy.box is None else f"layer_{number}"
        h = apply("Gemm", [h, constant(f"weights_{number}", weights), constant(f"bias_{number}", bias)], name)

    def output(name: str, kind: Any, *columns: int) -> Any:
        return helper.make_tensor_value_info(name, kind, ["N", *columns])

    width = len(policy.layers[-1][1])
    if policy.box is None:
        apply("ArgMax", [h], "action", axis=1, keepdims=0)
        outputs = [output("action", TensorProto.INT64), output("logits", TensorProto.FLOAT, width)]
    else:
        middle, half, low, high, deviation = policy.box
        scaled = apply("Mul", [h, constant("half_width", half)], "from_middle")
        mean = apply("Add", [constant("middle", middle), scaled], "mean")
        above = apply("Max", [mean, constant("low", low)], "not_below")
        apply("Min", [above, constant("high", high)], "action")
        shape = apply("Shape", [mean], "shape")
        apply("Expand", [constant("deviation", half * deviation), shape], "std")
        outputs = [output(name, TensorProto.FLOAT, width) for name in ("action", "mean", "std")]
    observation = helper.make_tensor_value_info("observation", TensorProto.FLOAT, ["N", len(policy.mean)])
    graph = helper.make_graph(nodes, "policy", [observation], outputs, constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], producer_name="pcces")
    model.ir_version = IR
    helper.set_model_props(model, about)
    onnx.checker.check_model(model)
    return bytes(model.SerializeToString())
