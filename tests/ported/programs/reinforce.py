"""REINFORCE on a pole on a cart: a policy, its saved log probabilities, discounted returns."""

from itertools import count

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from torch.distributions import Categorical


class CartPole:
    """A pole that is to be kept up by pushes from the left and right."""

    def __init__(self, rng):
        self.rng = rng

    def reset(self):
        self.state = self.rng.uniform(-0.05, 0.05, 4)
        return self.state.copy(), {}

    def step(self, action):
        _, v, angle, w = self.state
        force = 10.0 if action == 1 else -10.0
        push = (force + 0.05 * w**2 * np.sin(angle)) / 1.1
        turn = (9.8 * np.sin(angle) - np.cos(angle) * push) / (0.5 * (4 / 3 - 0.1 * np.cos(angle) ** 2 / 1.1))
        slide = push - 0.05 * turn * np.cos(angle) / 1.1
        self.state = self.state + 0.02 * np.array([v, slide, w, turn])
        done = bool(abs(self.state[0]) > 2.4 or abs(self.state[2]) > 0.21)
        return self.state.copy(), 1.0, done, False, {}


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.affine1 = nn.Linear(4, 16)
        self.dropout = nn.Dropout(p=0.0)
        self.affine2 = nn.Linear(16, 2)
        self.saved_log_probs = []
        self.rewards = []

    def forward(self, x):
        x = self.affine1(x)
        x = self.dropout(x)
        x = F.relu(x)
        action_scores = self.affine2(x)
        return F.softmax(action_scores, dim=1)


def select_action(policy, state, rng):
    state = torch.from_numpy(state).unsqueeze(0)
    m = Categorical(policy(state))
    action = (torch.tensor(rng.random()) > m.probs[:, 0].float()).long()
    policy.saved_log_probs.append(m.log_prob(action))
    return action.item(), m.entropy().item()


def finish_episode(policy, optimizer, gamma):
    R = 0
    policy_loss = []
    returns = []
    for r in policy.rewards[::-1]:
        R = r + gamma * R
        returns.insert(0, R)
    returns = torch.tensor(returns, dtype=torch.double)
    returns = (returns - returns.mean()) / (returns.std() + np.finfo(np.float32).eps.item())
    for log_prob, R in zip(policy.saved_log_probs, returns):
        policy_loss.append(-log_prob * R)
    optimizer.zero_grad()
    policy_loss = torch.cat(policy_loss).sum()
    policy_loss.backward()
    optimizer.step()
    del policy.rewards[:]
    del policy.saved_log_probs[:]
    return policy_loss.item()


def main():
    rng = np.random.default_rng(10)
    env = CartPole(rng)
    policy = Policy().double()
    for p in policy.parameters():
        p.data.copy_(torch.from_numpy(rng.uniform(-0.5, 0.5, tuple(p.shape))))
    optimizer = optim.Adam(policy.parameters(), lr=1e-2)
    running_reward, losses = 10, []
    for _ in count(1):
        state, _ = env.reset()
        ep_reward, entropies = 0, []
        for _ in range(1, 40):
            action, entropy = select_action(policy, state, rng)
            state, reward, done, _, _ = env.step(action)
            policy.rewards.append(reward)
            entropies.append(entropy)
            ep_reward += reward
            if done:
                break
        running_reward = 0.05 * ep_reward + (1 - 0.05) * running_reward
        losses += [finish_episode(policy, optimizer, 0.99), sum(entropies) / len(entropies), running_reward]
        if len(losses) >= 30:
            return losses


if __name__ == "__main__":
    print(main())
