"""Proximal policy optimisation of a continuous action: generalised advantages, a clipped ratio,
minibatches."""

import numpy as np
import torch
import torch.nn as nn
from torch.distributions.normal import Normal


class Chase:
    """A point that is to follow a target on a line, several at once."""

    def __init__(self, rng, envs):
        self.rng, self.envs = rng, envs

    def reset(self):
        self.point, self.target = self.rng.uniform(-1, 1, (2, self.envs))
        return np.stack([self.point, self.target], axis=1)

    def step(self, action):
        self.point = self.point + 0.3 * np.tanh(action[:, 0])
        reward = -np.abs(self.point - self.target)
        done = np.abs(self.point) > 2
        self.point = np.where(done, 0.0, self.point)
        self.target = self.target + 0.1 * self.rng.standard_normal(self.envs)
        return np.stack([self.point, self.target], axis=1), reward, done.astype(np.float64)


def layer_init(layer, rng, std=2**0.5, bias_const=0.0):
    weight = torch.from_numpy(rng.standard_normal(tuple(layer.weight.shape)))
    with torch.no_grad():
        layer.weight.copy_(weight * std / weight.norm(dim=1, keepdim=True))
    torch.nn.init.constant_(layer.bias, bias_const)
    return layer


class Agent(nn.Module):
    def __init__(self, rng):
        super().__init__()
        self.critic = nn.Sequential(
            layer_init(nn.Linear(2, 16), rng), nn.Tanh(), layer_init(nn.Linear(16, 1), rng, std=1.0)
        )
        self.actor_mean = nn.Sequential(
            layer_init(nn.Linear(2, 16), rng), nn.Tanh(), layer_init(nn.Linear(16, 1), rng, std=0.01)
        )
        self.actor_logstd = nn.Parameter(torch.zeros(1, 1))

    def get_action_and_value(self, x, action=None, eps=None):
        action_mean = self.actor_mean(x)
        action_logstd = self.actor_logstd.expand_as(action_mean)
        probs = Normal(action_mean, torch.exp(action_logstd))
        if action is None:
            action = probs.loc + probs.scale * eps
        return action, probs.log_prob(action).sum(1), probs.entropy().sum(1), self.critic(x)


def advantages_of(rewards, dones, values, next_done, next_value, gamma=0.95, gae_lambda=0.9):
    advantages = torch.zeros_like(rewards)
    lastgaelam = 0
    for t in reversed(range(len(rewards))):
        last = t == len(rewards) - 1
        nextnonterminal = 1.0 - (next_done if last else dones[t + 1])
        nextvalues = next_value if last else values[t + 1]
        delta = rewards[t] + gamma * nextvalues * nextnonterminal - values[t]
        advantages[t] = lastgaelam = delta + gamma * gae_lambda * nextnonterminal * lastgaelam
    return advantages


def main():
    rng = np.random.default_rng(11)
    steps, envs_count, losses = 12, 4, []
    envs = Chase(rng, envs_count)
    agent = Agent(rng).double()
    optimizer = torch.optim.Adam(agent.parameters(), lr=1e-2, eps=1e-5)
    obs = torch.zeros((steps, envs_count, 2), dtype=torch.float64)
    actions = torch.zeros((steps, envs_count, 1), dtype=torch.float64)
    logprobs, rewards, dones, values = (torch.zeros((steps, envs_count)).double() for _ in range(4))
    next_obs, next_done = torch.Tensor(envs.reset()).double(), torch.zeros(envs_count).double()
    for iteration in range(1, 6):
        optimizer.param_groups[0]["lr"] = (1.0 - (iteration - 1.0) / 6) * 1e-2
        for step in range(steps):
            obs[step], dones[step] = next_obs, next_done
            with torch.no_grad():
                eps = torch.from_numpy(rng.standard_normal((envs_count, 1)))
                action, logprob, _, value = agent.get_action_and_value(next_obs, eps=eps)
                values[step] = value.flatten()
            actions[step], logprobs[step] = action, logprob
            next_obs, reward, next_done = envs.step(action.cpu().numpy())
            rewards[step] = torch.tensor(reward).view(-1)
            next_obs, next_done = torch.tensor(next_obs), torch.tensor(next_done)
        with torch.no_grad():
            next_value = agent.critic(next_obs).reshape(1, -1)
            advantages = advantages_of(rewards, dones, values, next_done, next_value)
            returns = advantages + values
        b_obs, b_actions, b_logprobs = obs.reshape((-1, 2)), actions.reshape((-1, 1)), logprobs.reshape(-1)
        b_advantages, b_returns, b_values = advantages.reshape(-1), returns.reshape(-1), values.reshape(-1)
        b_inds = np.arange(steps * envs_count)
        for _ in range(2):
            rng.shuffle(b_inds)
            for start in range(0, len(b_inds), 16):
                mb_inds = b_inds[start : start + 16]
                _, newlogprob, entropy, newvalue = agent.get_action_and_value(
                    b_obs[mb_inds], b_actions[mb_inds]
                )
                ratio = (newlogprob - b_logprobs[mb_inds]).exp()
                mb_advantages = b_advantages[mb_inds]
                mb_advantages = (mb_advantages - mb_advantages.mean()) / (mb_advantages.std() + 1e-8)
                pg_loss1 = -mb_advantages * ratio
                pg_loss2 = -mb_advantages * torch.clamp(ratio, 1 - 0.2, 1 + 0.2)
                pg_loss = torch.max(pg_loss1, pg_loss2).mean()
                newvalue = newvalue.view(-1)
                v_clipped = b_values[mb_inds] + torch.clamp(newvalue - b_values[mb_inds], -0.2, 0.2)
                v_loss = torch.max(
                    (newvalue - b_returns[mb_inds]) ** 2, (v_clipped - b_returns[mb_inds]) ** 2
                )
                loss = pg_loss - 0.01 * entropy.mean() + 0.5 * 0.5 * v_loss.mean()
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
                optimizer.step()
                losses.append(loss.item())
        losses.append(rewards.mean().item())
    return losses


if __name__ == "__main__":
    print(main())
