"""Soft actor-critic: a squashed Gaussian policy, two critics and their slow copies, a learned temperature."""

from copy import deepcopy

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.distributions.normal import Normal
from torch.optim import Adam

LOG_STD_MAX, LOG_STD_MIN = 2, -5


def mlp(sizes, activation, output_activation=nn.Identity):
    layers = []
    for j in range(len(sizes) - 1):
        act = activation if j < len(sizes) - 2 else output_activation
        layers += [nn.Linear(sizes[j], sizes[j + 1]), act()]
    return nn.Sequential(*layers)


class Actor(nn.Module):
    def __init__(self, obs_dim, act_dim, hidden):
        super().__init__()
        self.net = mlp([obs_dim, hidden], nn.ReLU, nn.ReLU)
        self.mu_layer = nn.Linear(hidden, act_dim)
        self.log_std_layer = nn.Linear(hidden, act_dim)

    def forward(self, obs, eps):
        net_out = self.net(obs)
        mu = self.mu_layer(net_out)
        log_std = torch.clamp(self.log_std_layer(net_out), LOG_STD_MIN, LOG_STD_MAX)
        std = torch.exp(log_std)
        pi_distribution = Normal(mu, std)
        pi_action = mu + std * eps
        logp_pi = pi_distribution.log_prob(pi_action).sum(axis=-1)
        logp_pi -= (2 * (np.log(2) - pi_action - F.softplus(-2 * pi_action))).sum(axis=1)
        return torch.tanh(pi_action), logp_pi


class Critic(nn.Module):
    def __init__(self, obs_dim, act_dim, hidden):
        super().__init__()
        self.q1 = mlp([obs_dim + act_dim, hidden, 1], nn.ReLU)
        self.q2 = mlp([obs_dim + act_dim, hidden, 1], nn.ReLU)

    def forward(self, obs, act):
        both = torch.cat([obs, act], dim=-1)
        return torch.squeeze(self.q1(both), -1), self.q2(both).squeeze(-1)


class ReplayBuffer:
    """A point is pushed on a line, and is to stay at zero."""

    def __init__(self, rng, size):
        self.rng = rng
        self.obs, self.act = rng.uniform(-1, 1, (size, 2)), rng.uniform(-1, 1, (size, 1))
        self.obs2 = self.obs + 0.2 * np.concatenate([self.obs[:, 1:], self.act], axis=1)
        self.rew, self.done = -((self.obs2**2).sum(1)), (np.abs(self.obs2[:, 0]) > 1).astype(float)

    def sample_batch(self, size):
        idxs = self.rng.integers(0, len(self.rew), size=size)
        batch = dict(obs=self.obs[idxs], obs2=self.obs2[idxs], act=self.act[idxs])
        batch.update(rew=self.rew[idxs], done=self.done[idxs])
        return {k: torch.as_tensor(v, dtype=torch.float64) for k, v in batch.items()}


def main():
    rng = np.random.default_rng(12)
    noise = lambda: torch.as_tensor(rng.standard_normal((16, 1)))
    actor, critic = Actor(2, 1, 16).double(), Critic(2, 1, 16).double()
    for p in [*actor.parameters(), *critic.parameters()]:
        p.data.copy_(torch.from_numpy(rng.uniform(-0.4, 0.4, tuple(p.shape))))
    critic_targ = deepcopy(critic)
    for p in critic_targ.parameters():
        p.requires_grad = False
    log_alpha = torch.zeros(1, dtype=torch.float64, requires_grad=True)
    pi_optimizer, q_optimizer = Adam(actor.parameters(), lr=3e-3), Adam(critic.parameters(), lr=3e-3)
    alpha_optimizer = Adam([log_alpha], lr=1e-2)
    buffer, losses, gamma, polyak = ReplayBuffer(rng, 200), [], 0.95, 0.95
    for _ in range(15):
        data = buffer.sample_batch(16)
        alpha = log_alpha.exp().detach()
        q1, q2 = critic(data["obs"], data["act"])
        with torch.no_grad():
            a2, logp_a2 = actor(data["obs2"], noise())
            q_pi_targ = torch.min(*critic_targ(data["obs2"], a2))
            backup = data["rew"] + gamma * (1 - data["done"]) * (q_pi_targ - alpha * logp_a2)
        loss_q = ((q1 - backup) ** 2).mean() + ((q2 - backup) ** 2).mean()
        q_optimizer.zero_grad()
        loss_q.backward()
        q_optimizer.step()
        critic.requires_grad_(False)
        pi, logp_pi = actor(data["obs"], noise())
        loss_pi = (alpha * logp_pi - torch.min(*critic(data["obs"], pi))).mean()
        pi_optimizer.zero_grad()
        loss_pi.backward()
        pi_optimizer.step()
        critic.requires_grad_(True)
        alpha_loss = -(log_alpha * (logp_pi.detach() - 1.0)).mean()
        alpha_optimizer.zero_grad()
        alpha_loss.backward()
        alpha_optimizer.step()
        with torch.no_grad():
            for p, p_targ in zip(critic.parameters(), critic_targ.parameters()):
                p_targ.data.mul_(polyak)
                p_targ.data.add_((1 - polyak) * p.data)
        losses += [loss_q.item(), loss_pi.item(), alpha.item()]
    return losses


if __name__ == "__main__":
    print(main())
