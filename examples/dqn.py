"""Deep Q-learning on the cliff: a walker learns the shortest way that does not fall off.

The world is the cliff of Sutton and Barto (Reinforcement Learning, example 6.6): a grid of 4 by 12 cells,
start and goal at the two ends of the bottom row, and a cliff between them. A step costs 1; the cliff costs 20
(100 in the book) and puts the walker back at the start; the goal ends the walk. The best way has 13 steps
along the edge.

The learner is that of Mnih et al. 2015: a network of action values, a memory of transitions to draw batches
from, and a slowly following copy of the network that the targets come from, without a gradient. The result is
compared with the exact values, which a grid as small as this one has: from every cell the greedy action has
to be a best one.

This is a PyTorch program; only the import below differs.

Run it: python examples/dqn.py [--tau 0.02] [--device gpu]
"""

import argparse
import time

import numpy as np
import wengert as torch
import wengert.nn as nn
from wengert.nn import functional as F

ROWS, COLUMNS = 4, 12
START, GOAL = (3, 0), (3, 11)
MOVES = [(-1, 0), (0, 1), (1, 0), (0, -1)]
ARROWS = "↑→↓←"
FALL = -20.0
CELLS = ROWS * COLUMNS


def is_cliff(row, column):
    """Whether a cell is part of the cliff."""
    return row == 3 and 0 < column < 11


def move(row, column, action):
    """The next cell, the reward, and whether the walk is over."""
    down, right = MOVES[action]
    row, column = min(max(row + down, 0), ROWS - 1), min(max(column + right, 0), COLUMNS - 1)
    if is_cliff(row, column):
        return START, FALL, False
    return (row, column), -1.0, (row, column) == GOAL


def walkable():
    """The cells from which an action can be taken."""
    cells = [(row, column) for row in range(ROWS) for column in range(COLUMNS)]
    return [cell for cell in cells if not is_cliff(*cell) and cell != GOAL]


def exact_values(discount):
    """The value of every action in every cell, by iterating Bellman's equation until nothing changes."""
    values = np.zeros((CELLS, len(MOVES)))
    for _ in range(1000):
        before = values.copy()
        for row, column in walkable():
            for action in range(len(MOVES)):
                (r, c), reward, over = move(row, column, action)
                best = 0.0 if over else before[r * COLUMNS + c].max()
                values[row * COLUMNS + column, action] = reward + discount * best
        if np.abs(values - before).max() < 1e-12:
            break
    return values


class Memory:
    """The latest transitions, as arrays."""

    def __init__(self, size):
        self.cells, self.next_cells, self.actions = (np.zeros(size, np.int64) for _ in range(3))
        self.rewards, self.over = np.zeros(size, np.float32), np.zeros(size, np.float32)
        self.count, self.size = 0, size

    def add(self, cell, action, reward, next_cell, over):
        """Puts a transition in the place of the oldest."""
        i = self.count % self.size
        self.cells[i], self.next_cells[i], self.actions[i] = cell, next_cell, action
        self.rewards[i], self.over[i] = reward, over
        self.count += 1

    def draw(self, rng, batch):
        """`batch` transitions: cells, actions, rewards, next cells, and which of them ended a walk."""
        i = rng.integers(0, min(self.count, self.size), batch)
        return self.cells[i], self.actions[i], self.rewards[i], self.next_cells[i], self.over[i]


class QNetwork(nn.Module):
    """Cells, one-hot, to the value of each action."""

    def __init__(self, hidden=64):
        super().__init__()
        self.hidden = nn.Linear(CELLS, hidden)
        self.output = nn.Linear(hidden, len(MOVES))

    def forward(self, x):
        return self.output(F.relu(self.hidden(x)))


class Learner:
    """Network, target network and optimiser."""

    def __init__(self, options):
        torch.manual_seed(options.seed)
        self.options, self.rng = options, np.random.default_rng(options.seed)
        self.memory = Memory(options.memory)
        self.online, self.target = QNetwork().to(options.device), QNetwork().to(options.device)
        self.target.load_state_dict(self.online.state_dict())
        self.optimizer = torch.optim.Adam(self.online.parameters(), lr=options.lr)
        self.updates = 0

    def encode(self, cells):
        """Cells as rows of a unit matrix."""
        return torch.from_numpy(np.eye(CELLS, dtype=np.float32)[cells]).to(self.options.device)

    def loss(self, batch):
        """How far the values of the actions taken are from reward plus discounted value of what followed."""
        cells, actions, rewards, next_cells, over = batch
        device = self.options.device
        # Devices called "gpu" index with 32 bits.
        actions = torch.from_numpy(actions.astype(np.int32) if device.startswith("gpu") else actions).to(
            device
        )
        rewards, over = torch.from_numpy(rewards).to(device), torch.from_numpy(over).to(device)
        values = self.online(self.encode(cells)).gather(1, actions.unsqueeze(1)).squeeze(1)
        with torch.no_grad():
            future = self.target(self.encode(next_cells)).max(dim=1).values
            wanted = rewards + self.options.discount * (1.0 - over) * future
        return F.smooth_l1_loss(values, wanted)

    def update(self):
        """One step of the optimiser; then the target network follows."""
        loss = self.loss(self.memory.draw(self.rng, self.options.batch))
        self.optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_value_(self.online.parameters(), 1.0)
        self.optimizer.step()
        self.updates += 1
        self.follow()
        return loss

    def follow(self):
        """Moves the target network a little with `--tau`, else all the way every `--sync` updates."""
        tau = self.options.tau
        if tau > 0.0:
            for p, q in zip(self.target.parameters(), self.online.parameters()):
                p.data.mul_(1.0 - tau).add_(q.data, alpha=tau)
        elif self.updates % self.options.sync == 0:
            self.target.load_state_dict(self.online.state_dict())

    def values(self):
        """The network's value of every action in every cell, (cells, actions)."""
        with torch.no_grad():
            return self.online(self.encode(np.arange(CELLS))).cpu().numpy()

    def act(self, cell, exploration):
        """A random action with probability `exploration`, else the best known."""
        if self.rng.random() < exploration:
            return int(self.rng.integers(len(MOVES)))
        with torch.no_grad():
            return self.online(self.encode([cell])).argmax(dim=1).item()


def walk(learner):
    """One step of the world after another, forever: yields how many were made."""
    cell, age = START, 0
    options = learner.options
    for count in range(options.steps):
        exploration = max(0.1, 1.0 - 1.5 * count / options.steps)
        action = learner.act(cell[0] * COLUMNS + cell[1], exploration)
        after, reward, over = move(*cell, action)
        learner.memory.add(cell[0] * COLUMNS + cell[1], action, reward, after[0] * COLUMNS + after[1], over)
        age += 1
        # A walk that gets nowhere starts over, from anywhere; it is not the end of the world.
        lost = age >= options.patience
        if over or lost:
            cells = walkable()
            cell, age = cells[learner.rng.integers(len(cells))], 0
        else:
            cell = after
        yield count + 1


def greedy_way(values, limit=50):
    """The cells from start to goal by the best known actions, and the sum of rewards."""
    cell, way, total = START, [START], 0.0
    for _ in range(limit):
        cell, reward, over = move(*cell, values[cell[0] * COLUMNS + cell[1]].argmax())
        way.append(cell)
        total += reward
        if over:
            break
    return way, total


def judge(values, exact):
    """In how many cells the greedy action is a best one, and how far the values are off on average."""
    cells = [row * COLUMNS + column for row, column in walkable()]
    best = [exact[i, values[i].argmax()] > exact[i].max() - 1e-9 for i in cells]
    return sum(best), len(cells), float(np.abs(values[cells].max(1) - exact[cells].max(1)).mean())


def picture(values):
    """The greedy actions as arrows."""
    lines = []
    for row in range(ROWS):
        line = ""
        for column in range(COLUMNS):
            arrow = ARROWS[values[row * COLUMNS + column].argmax()]
            line += "█" if is_cliff(row, column) else "G" if (row, column) == GOAL else arrow
        lines.append(" " + " ".join(line))
    return "\n".join(lines)


def train(options):
    """Walks and learns, with a line of the table every tenth of the way; returns the learner and its
    values."""
    learner, exact = Learner(options), exact_values(options.discount)
    print(f"{'step':>6} {'loss':>8} {'best actions':>13} {'error':>7} {'way':>5}")
    loss = torch.zeros(())
    for count in walk(learner):
        if learner.memory.count >= options.batch:
            loss = learner.update()
        if count % (options.steps // 10) == 0:
            values = learner.values()
            right, total, error = judge(values, exact)
            way, _ = greedy_way(values)
            length = len(way) - 1 if way[-1] == GOAL else "-"
            print(
                f"{count:>6} {loss.item():>8.4f} {right:>6} of {total:>3} {error:>7.3f} {length:>5}",
                flush=True,
            )
    return learner, learner.values(), exact


def parse(arguments=None):
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--steps", type=int, default=8000)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--memory", type=int, default=8000)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--discount", type=float, default=0.97)
    parser.add_argument("--tau", type=float, default=0.0, help="how much the target follows in every update")
    parser.add_argument("--sync", type=int, default=100, help="updates between copies, without --tau")
    parser.add_argument("--patience", type=int, default=60, help="steps of a walk before it starts over")
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args(arguments)


def main(arguments=None):
    """Trains, prints the table and the policy; returns the learner, its values, and the exact ones."""
    options = parse(arguments)
    start = time.perf_counter()
    learner, values, exact = train(options)
    way, total = greedy_way(values)
    print(f"\n{picture(values)}\n")
    right, count, _ = judge(values, exact)
    print(f"{len(way) - 1} steps for {total:.0f}; a best action in {right} of {count} cells", end="")
    print(f" after {time.perf_counter() - start:.1f} s")
    return learner, values, exact


if __name__ == "__main__":
    main()
