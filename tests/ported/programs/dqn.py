"""Deep Q-learning in a corridor: replay memory, a target network, Huber loss."""

import random
from collections import deque, namedtuple

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim

Transition = namedtuple("Transition", ("state", "action", "next_state", "reward"))


class Corridor:
    """Steps to the left or right; the reward is at the right end."""

    def __init__(self, rng, length=6):
        self.rng, self.length = rng, length

    def reset(self):
        self.place, self.time = int(self.rng.integers(0, self.length - 1)), 0
        return self.observation()

    def observation(self):
        return np.eye(self.length)[self.place] + 0.05 * self.rng.standard_normal(self.length)

    def step(self, action):
        self.place = max(0, self.place + (1 if action == 1 else -1))
        self.time += 1
        terminated = self.place == self.length - 1
        return self.observation(), (1.0 if terminated else -0.02), terminated, self.time >= 12


class ReplayMemory:
    def __init__(self, capacity):
        self.memory = deque(maxlen=capacity)
        self.random = random.Random(9)

    def push(self, *args):
        self.memory.append(Transition(*args))

    def sample(self, batch_size):
        return self.random.sample(self.memory, batch_size)

    def __len__(self):
        return len(self.memory)


class DQN(nn.Module):
    def __init__(self, n_observations, n_actions):
        super(DQN, self).__init__()  # noqa: UP008
        self.layer1 = nn.Linear(n_observations, 16, dtype=torch.float64)
        self.layer2 = nn.Linear(16, 16, dtype=torch.float64)
        self.layer3 = nn.Linear(16, n_actions, dtype=torch.float64)

    def forward(self, x):
        x = F.relu(self.layer1(x))
        x = F.relu(self.layer2(x))
        return self.layer3(x)


def optimize_model(memory, policy_net, target_net, optimizer, batch_size, gamma):
    batch = Transition(*zip(*memory.sample(batch_size)))
    non_final_mask = torch.tensor(tuple(s is not None for s in batch.next_state), dtype=torch.bool)
    non_final_next_states = torch.cat([s for s in batch.next_state if s is not None])
    state_batch, action_batch = torch.cat(batch.state), torch.cat(batch.action)
    reward_batch = torch.cat(batch.reward)
    state_action_values = policy_net(state_batch).gather(1, action_batch)
    next_state_values = torch.zeros(batch_size, dtype=torch.float64)
    with torch.no_grad():
        next_state_values[non_final_mask] = target_net(non_final_next_states).max(1).values
    expected = (next_state_values * gamma) + reward_batch
    loss = nn.SmoothL1Loss()(state_action_values, expected.unsqueeze(1))
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_value_(policy_net.parameters(), 100)
    optimizer.step()
    return loss.item()


def main():
    rng = np.random.default_rng(9)
    env = Corridor(rng)
    policy_net, target_net = DQN(6, 2), DQN(6, 2)
    for p in policy_net.parameters():
        p.data.copy_(torch.from_numpy(rng.uniform(-0.4, 0.4, tuple(p.shape))))
    target_net.load_state_dict(policy_net.state_dict())
    optimizer = optim.AdamW(policy_net.parameters(), lr=5e-3, amsgrad=True)
    memory, losses, tau = ReplayMemory(100), [], 0.05
    for episode in range(10):
        state = torch.tensor(env.reset(), dtype=torch.float64).unsqueeze(0)
        done, total = False, 0.0
        while not done:
            if rng.random() > 0.9 * 0.8**episode:
                with torch.no_grad():
                    action = policy_net(state).max(1).indices.view(1, 1)
            else:
                action = torch.tensor([[rng.integers(0, 2)]], dtype=torch.long)
            observation, reward, terminated, truncated = env.step(action.item())
            done, total = terminated or truncated, total + reward
            next_state = None if terminated else torch.tensor(observation).unsqueeze(0)
            memory.push(state, action, next_state, torch.tensor([reward], dtype=torch.float64))
            state = next_state
            if len(memory) >= 16:
                losses.append(optimize_model(memory, policy_net, target_net, optimizer, 16, 0.95))
                target_state, policy_state = target_net.state_dict(), policy_net.state_dict()
                for key in policy_state:
                    target_state[key] = policy_state[key] * tau + target_state[key] * (1 - tau)
                target_net.load_state_dict(target_state)
        losses.append(total)
    return losses


if __name__ == "__main__":
    print(main())
