"""LoRA: a frozen network whose linear layers are replaced by ones with a trained difference of low rank."""

import math

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.nn.utils.parametrize as parametrize


class LoRALinear(nn.Linear):
    def __init__(self, in_features, out_features, r=2, lora_alpha=4, **kwargs):
        nn.Linear.__init__(self, in_features, out_features, **kwargs)
        self.lora_A = nn.Parameter(self.weight.new_zeros((r, in_features)))
        self.lora_B = nn.Parameter(self.weight.new_zeros((out_features, r)))
        self.scaling, self.merged = lora_alpha / r, False
        self.weight.requires_grad = False

    def train(self, mode: bool = True):
        nn.Linear.train(self, mode)
        if mode == self.merged:
            sign = -1 if mode else 1
            self.weight.data += sign * (self.lora_B @ self.lora_A) * self.scaling
            self.merged = not mode
        return self

    def forward(self, x):
        result = F.linear(x, self.weight, bias=self.bias)
        if not self.merged:
            result += (x @ self.lora_A.transpose(0, 1) @ self.lora_B.transpose(0, 1)) * self.scaling
        return result


class LoRAParametrization(nn.Module):
    """The same difference, as a parametrization of a layer that stays."""

    def __init__(self, A, B, scale):
        super().__init__()
        self.lora_A, self.lora_B, self.scale, self.enabled = nn.Parameter(A), nn.Parameter(B), scale, True

    def forward(self, original):
        return original + self.lora_B @ self.lora_A * self.scale if self.enabled else original


def replace_linear(module):
    for name, child in module.named_children():
        if isinstance(child, nn.Linear):
            new = LoRALinear(child.in_features, child.out_features, dtype=child.weight.dtype)
            missing, unexpected = new.load_state_dict(child.state_dict(), strict=False)
            assert sorted(missing) == ["lora_A", "lora_B"]
            assert not unexpected
            setattr(module, name, new)
        else:
            replace_linear(child)


def mark_only_lora_as_trainable(model):
    for n, p in model.named_parameters():
        p.requires_grad = "lora_" in n


def main():
    rng = np.random.default_rng(18)
    inner = nn.Sequential(nn.Linear(10, 10), nn.Tanh())
    model = nn.Sequential(nn.Linear(6, 10), nn.ReLU(), inner, nn.Linear(10, 3)).double()
    for p in model.parameters():
        p.data.copy_(torch.from_numpy(rng.uniform(-0.5, 0.5, tuple(p.shape))))
    replace_linear(model)
    for name, p in model.named_parameters():
        if "lora_A" in name:
            p.data.copy_(torch.from_numpy(rng.uniform(-1, 1, tuple(p.shape)) / math.sqrt(p.shape[1])))
    mark_only_lora_as_trainable(model)
    trainable = sum(p.numel() for p in model.parameters() if p.requires_grad)
    losses = [trainable / sum(p.numel() for p in model.parameters())]
    x = torch.from_numpy(rng.standard_normal((32, 6)))
    y = torch.from_numpy(rng.standard_normal((6, 3)).argmax(1))[x.argmax(dim=1)]
    optimizer = torch.optim.AdamW(filter(lambda p: p.requires_grad, model.parameters()), lr=3e-2)
    for _ in range(12):
        model.train()
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        model.eval()
        with torch.no_grad():
            losses += [loss.item(), F.cross_entropy(model(x), y).item()]
    lora_state = {k: v for k, v in model.state_dict().items() if "lora_" in k}
    frozen = model[0].weight.detach().clone()
    layer = nn.Linear(6, 10, bias=False).double()
    layer.weight.data = frozen
    A, B = lora_state["0.lora_A"], torch.zeros_like(lora_state["0.lora_B"])
    parametrize.register_parametrization(layer, "weight", LoRAParametrization(A.clone(), B, 2.0))
    layer.parametrizations.weight.original.requires_grad = False
    optimizer = torch.optim.SGD([p for p in layer.parameters() if p.requires_grad], lr=0.5, momentum=0.9)
    for _ in range(6):
        optimizer.zero_grad(set_to_none=True)
        loss = F.smooth_l1_loss(layer(x), torch.roll(x, 1, 1).repeat(1, 2)[:, :10])
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    parametrize.remove_parametrizations(layer, "weight", leave_parametrized=True)
    return [*losses, layer.weight.norm().item()]


if __name__ == "__main__":
    print(main())
