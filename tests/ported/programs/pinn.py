"""A physics-informed network: Burgers' equation by derivatives of the network, Adam and then L-BFGS."""

from collections import OrderedDict

import numpy as np
import torch


class DNN(torch.nn.Module):
    def __init__(self, layers):
        super().__init__()
        self.depth = len(layers) - 1
        self.activation = torch.nn.Tanh
        layer_list = list()
        for i in range(self.depth - 1):
            layer_list.append((f"layer_{i}", torch.nn.Linear(layers[i], layers[i + 1])))
            layer_list.append((f"activation_{i}", self.activation()))
        layer_list.append((f"layer_{self.depth - 1}", torch.nn.Linear(layers[-2], layers[-1])))
        self.layers = torch.nn.Sequential(OrderedDict(layer_list))

    def forward(self, x):
        return self.layers(x)


class PhysicsInformedNN:
    def __init__(self, X_u, u, X_f, layers, nu, rng):
        self.x_u = torch.tensor(X_u[:, 0:1], requires_grad=True).double()
        self.t_u = torch.tensor(X_u[:, 1:2], requires_grad=True).double()
        self.x_f = torch.tensor(X_f[:, 0:1], requires_grad=True).double()
        self.t_f = torch.tensor(X_f[:, 1:2], requires_grad=True).double()
        self.u, self.nu = torch.tensor(u).double(), nu
        self.dnn = DNN(layers).to(torch.device("cpu"), torch.double)
        for name, p in self.dnn.named_parameters():
            bound = 0.0 if "bias" in name else np.sqrt(6 / sum(p.shape))
            p.data = torch.tensor(rng.uniform(-bound, bound, tuple(p.shape)))
        self.optimizer = torch.optim.LBFGS(
            self.dnn.parameters(),
            lr=1.0,
            max_iter=12,
            history_size=10,
            tolerance_grad=1e-9,
            line_search_fn="strong_wolfe",
        )
        self.losses = []

    def net_u(self, x, t):
        return self.dnn(torch.cat([x, t], dim=1))

    def net_f(self, x, t):
        u = self.net_u(x, t)
        ones = torch.ones_like(u)
        u_t = torch.autograd.grad(u, t, grad_outputs=ones, retain_graph=True, create_graph=True)[0]
        u_x = torch.autograd.grad(u, x, grad_outputs=ones, retain_graph=True, create_graph=True)[0]
        u_xx = torch.autograd.grad(u_x, x, grad_outputs=ones, retain_graph=True, create_graph=True)[0]
        return u_t + u * u_x - self.nu * u_xx

    def loss_func(self):
        self.optimizer.zero_grad()
        loss_u = torch.mean((self.u - self.net_u(self.x_u, self.t_u)) ** 2)
        loss_f = torch.mean(self.net_f(self.x_f, self.t_f) ** 2)
        loss = loss_u + loss_f
        loss.backward()
        self.losses.append(loss.item())
        return loss

    def train(self, steps):
        self.dnn.train()
        adam = torch.optim.Adam(self.dnn.parameters(), lr=5e-3)
        for _ in range(steps):
            self.loss_func()
            adam.step()
        self.optimizer.step(self.loss_func)

    def predict(self, X):
        x = torch.tensor(X[:, 0:1], requires_grad=True).double()
        t = torch.tensor(X[:, 1:2], requires_grad=True).double()
        self.dnn.eval()
        u, f = self.net_u(x, t), self.net_f(x, t)
        return u.detach().cpu().numpy(), f.detach().cpu().numpy()


def main():
    rng = np.random.default_rng(17)
    x0 = np.linspace(-1, 1, 16)[:, None]
    edge = np.hstack([np.where(np.arange(16) % 2, 1.0, -1.0)[:, None], rng.random((16, 1))])
    X_u = np.vstack([np.hstack([x0, 0 * x0]), edge])
    u = np.vstack([-np.sin(np.pi * x0), np.zeros((16, 1))])
    X_f = np.vstack([rng.uniform([-1, 0], [1, 1], (40, 2)), X_u])
    model = PhysicsInformedNN(X_u, u, X_f, [2, 12, 12, 1], 0.01 / np.pi, rng)
    model.train(15)
    predicted, residual = model.predict(X_f[:10])
    return [*model.losses, float(np.abs(predicted).mean()), float(np.linalg.norm(residual))]


if __name__ == "__main__":
    print(main())
