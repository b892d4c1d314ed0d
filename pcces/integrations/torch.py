"""A policy as a PyTorch module; needs the extra `torch`."""

from __future__ import annotations

from typing import Any

import numpy as np

from pcces.integrations.export import Exported


def torch_module(policy: Exported) -> Any:
    """A `torch.nn.Module` whose layers are parameters, and whose normalisation and box are buffers.

    Called with observations (.., size) it gives the likeliest actions, `draw` gives drawn ones, and `distribution` what
    they are drawn from: a `torch.distributions` Categorical, or a Normal whose draws are then clipped to the box.
    """
    try:
        import torch
    except ImportError as error:
        raise ImportError("a PyTorch module needs the extra torch: pip install 'pcces[torch]'") from error

    def tensor(values: Any) -> Any:
        return torch.from_numpy(np.array(values, dtype=np.float32))

    class PolicyModule(torch.nn.Module):
        """The policy of a run."""

        def __init__(self) -> None:
            super().__init__()
            self.layers = torch.nn.ModuleList()
            for weights, bias in policy.layers:
                layer = torch.nn.Linear(*weights.shape)
                layer.weight.data, layer.bias.data = tensor(weights.T), tensor(bias)
                self.layers.append(layer)
            self.discrete = policy.box is None
            kept = {"observation_mean": policy.mean, "observation_std": policy.std}
            if policy.box is not None:
                kept |= {f"action_{name}": values for name, values in policy.box._asdict().items()}
                self.log_std = torch.nn.Parameter(tensor(kept.pop("action_deviation")).log())
            for name, values in kept.items():
                self.register_buffer(name, tensor(values))

        def head(self, observation: Any) -> Any:
            """The network's outputs."""
            h = ((observation - self.observation_mean) / self.observation_std).clip(-policy.clip, policy.clip)
            for layer in self.layers[:-1]:
                h = layer(h).tanh()
            return self.layers[-1](h)

        def distribution(self, observation: Any) -> Any:
            """What actions are drawn from."""
            h = self.head(observation)
            if self.discrete:
                return torch.distributions.Categorical(logits=h)
            return torch.distributions.Normal(
                self.action_middle + self.action_half * h, self.action_half * self.log_std.exp()
            )

        def inside(self, action: Any) -> Any:
            """Actions as the environment takes them."""
            return action if self.discrete else torch.minimum(torch.maximum(action, self.action_low), self.action_high)

        def forward(self, observation: Any) -> Any:
            """The likeliest actions."""
            h = self.head(observation)
            return h.argmax(-1) if self.discrete else self.inside(self.action_middle + self.action_half * h)

        def draw(self, observation: Any) -> Any:
            """Actions as they were certified."""
            return self.inside(self.distribution(observation).sample())

    return PolicyModule().eval()
