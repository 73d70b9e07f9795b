"""A neural ordinary differential equation: Runge-Kutta steps, gradients by the adjoint equation."""

import numpy as np
import torch
import torch.nn as nn


class ODEFunc(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, 12), nn.Tanh(), nn.Linear(12, 2))

    def forward(self, t, y):
        return self.net(y**3)


class Lambda(nn.Module):
    def forward(self, t, y):
        return torch.mm(y**3, torch.tensor([[-0.1, 2.0], [-2.0, -0.1]], dtype=torch.float64))


def rk4_step(func, t, dt, y):
    k1 = func(t, y)
    k2 = func(t + dt / 2, tuple(a + dt / 2 * b for a, b in zip(y, k1)))
    k3 = func(t + dt / 2, tuple(a + dt / 2 * b for a, b in zip(y, k2)))
    k4 = func(t + dt, tuple(a + dt * b for a, b in zip(y, k3)))
    return tuple(a + dt / 6 * (p + 2 * q + 2 * r + s) for a, p, q, r, s in zip(y, k1, k2, k3, k4))


class OdeintAdjoint(torch.autograd.Function):
    @staticmethod
    def forward(ctx, func, y0, t, *params):
        ctx.func = func
        with torch.no_grad():
            ys = [y0]
            for i in range(len(t) - 1):
                ys += rk4_step(lambda s, y: (func(s, y[0]),), t[i], t[i + 1] - t[i], (ys[-1],))
            ans = torch.stack(ys)
        ctx.save_for_backward(t, ans, *params)
        return ans

    @staticmethod
    def backward(ctx, grad_output):
        func = ctx.func
        t, ans, *params = ctx.saved_tensors
        params = tuple(params)

        def augmented_dynamics(s, y_aug):
            y, adj_y = y_aug[0], y_aug[1]
            with torch.enable_grad():
                y = y.detach().requires_grad_(True)
                func_eval = func(s, y)
                vjp_y, *vjp_params = torch.autograd.grad(func_eval, (y, *params), -adj_y, allow_unused=True)
            vjp_params = [torch.zeros_like(p) if v is None else v for v, p in zip(vjp_params, params)]
            return (func_eval.detach(), vjp_y, *vjp_params)

        with torch.no_grad():
            adj_y = grad_output[-1]
            adj_params = tuple(torch.zeros_like(p) for p in params)
            for i in range(len(t) - 1, 0, -1):
                aug_state = (ans[i], adj_y, *adj_params)
                aug_state = rk4_step(augmented_dynamics, t[i], t[i - 1] - t[i], aug_state)
                adj_y = aug_state[1] + grad_output[i - 1]
                adj_params = aug_state[2:]
        return (None, adj_y, None, *adj_params)


def odeint_adjoint(func, y0, t):
    return OdeintAdjoint.apply(func, y0, t, *func.parameters())


class RunningAverageMeter:
    def __init__(self, momentum=0.9):
        self.momentum, self.val, self.avg = momentum, None, 0

    def update(self, val):
        self.avg = val if self.val is None else self.avg * self.momentum + val * (1 - self.momentum)
        self.val = val


def main():
    rng = np.random.default_rng(15)
    t = torch.linspace(0.0, 1.0, 21, dtype=torch.float64)
    with torch.no_grad():
        true_y = odeint_adjoint(Lambda(), torch.tensor([[1.5, 0.0]]).double(), t)
    func = ODEFunc().double()
    for p in func.parameters():
        p.data.copy_(torch.from_numpy(rng.normal(0, 0.2, tuple(p.shape))))
    optimizer = torch.optim.RMSprop(func.parameters(), lr=2e-2)
    meter, losses = RunningAverageMeter(), []
    for _ in range(12):
        s = torch.from_numpy(rng.choice(np.arange(15, dtype=np.int64), 6, replace=False))
        batch_y0, batch_t = true_y[s], t[:6]
        batch_y = torch.stack([true_y[s + i] for i in range(6)], dim=0)
        optimizer.zero_grad()
        pred_y = odeint_adjoint(func, batch_y0, batch_t)
        loss = torch.mean(torch.abs(pred_y - batch_y))
        loss.backward()
        optimizer.step()
        meter.update(loss.item())
        losses += [loss.item(), meter.avg]
    y0 = true_y[0].clone().requires_grad_()
    odeint_adjoint(func, y0, t[:4])[-1].sum().backward()
    return losses + y0.grad[0].tolist()


if __name__ == "__main__":
    print(main())
