"""A small GPT that learns to write Python, byte by byte, from the sources of the standard library.

The model is a transformer decoder as GPT-2 has it (Radford et al. 2019): learned positions, layer
normalisation before each part, GELU, causal attention, and one matrix for embedding and output. It is trained
by AdamW with weight decay on matrices alone, linear warm-up and cosine decay, clipped gradients, and
gradients accumulated over several batches. The default size trains in a minute or two on two cores;
`--preset gpt2` has the shape of GPT-2 with 124 million parameters.

This is a PyTorch program; only the imports below differ, and `--grain`, which PyTorch has not.

Run it: python examples/gpt.py [--steps 1000] [--amp bf16] [--checkpoint] [--device gpu] [--preset small]
On two processes, of which each draws its own batches: mpirun -n 2 python examples/gpt.py --distributed
With `--grain 8` besides, 1, 2, 4 or 8 processes find the same losses, bit for bit.
"""

import argparse
import contextlib
import math
import sys
import sysconfig
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import wengert as torch
import wengert.distributed as dist
import wengert.nn as nn
from wengert.nn import functional as F
from wengert.nn.parallel import DistributedDataParallel
from wengert.utils.checkpoint import checkpoint


@dataclass
class Config:
    """The shape of the model, and how it computes."""

    layers: int = 4
    heads: int = 4
    width: int = 128
    block: int = 64
    vocabulary: int = 256
    dropout: float = 0.0
    bias: bool = True
    fused: bool = True  # attention in one call; otherwise spelled out, with the mask in a buffer
    checkpoint: bool = False


PRESETS = {
    "tiny": Config(layers=2, heads=2, width=32, block=32),
    "small": Config(),
    # Bytes use 256 of the 50257 rows of GPT-2's table; the shape is what counts here.
    "gpt2": Config(layers=12, heads=12, width=768, block=1024, vocabulary=50257, dropout=0.1),
}


class CausalSelfAttention(nn.Module):
    """Every position looks at itself and what came before."""

    def __init__(self, config):
        super().__init__()
        if config.width % config.heads:
            raise ValueError(f"{config.heads} heads do not divide a width of {config.width}")
        self.heads, self.dropout, self.fused = config.heads, config.dropout, config.fused
        self.qkv = nn.Linear(config.width, 3 * config.width, bias=config.bias)
        self.project = nn.Linear(config.width, config.width, bias=config.bias)
        self.project.is_residual = True
        if not self.fused:
            below = torch.tril(torch.ones(config.block, config.block))
            self.register_buffer("mask", below.view(1, 1, config.block, config.block) == 0, persistent=False)

    def forward(self, x):
        batch, time, width = x.size()
        q, k, v = self.qkv(x).split(width, dim=2)
        q, k, v = (
            part.view(batch, time, self.heads, width // self.heads).transpose(1, 2) for part in (q, k, v)
        )
        dropout = self.dropout if self.training else 0.0
        if self.fused:
            y = F.scaled_dot_product_attention(q, k, v, dropout_p=dropout, is_causal=True)
        else:
            scores = (q @ k.transpose(-2, -1)) / math.sqrt(k.size(-1))
            scores = scores.masked_fill(self.mask[:, :, :time, :time], float("-inf"))
            y = F.dropout(F.softmax(scores, dim=-1), dropout) @ v
        y = y.transpose(1, 2).contiguous().view(batch, time, width)
        return F.dropout(self.project(y), self.dropout, training=self.training)


class MLP(nn.Module):
    """Four times as wide in between."""

    def __init__(self, config):
        super().__init__()
        self.widen = nn.Linear(config.width, 4 * config.width, bias=config.bias)
        self.project = nn.Linear(4 * config.width, config.width, bias=config.bias)
        self.project.is_residual = True
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, x):
        return self.dropout(self.project(F.gelu(self.widen(x), approximate="tanh")))


class Block(nn.Module):
    """Attention and network, each added to what comes in."""

    def __init__(self, config):
        super().__init__()
        self.norm1 = nn.LayerNorm(config.width)
        self.attention = CausalSelfAttention(config)
        self.norm2 = nn.LayerNorm(config.width)
        self.mlp = MLP(config)

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class GPT(nn.Module):
    """Bytes (batch, time) to logits (batch, time, vocabulary), and the loss if the targets are given."""

    def __init__(self, config):
        super().__init__()
        self.config = config
        self.transformer = nn.ModuleDict(
            dict(
                tokens=nn.Embedding(config.vocabulary, config.width),
                positions=nn.Embedding(config.block, config.width),
                drop=nn.Dropout(config.dropout),
                blocks=nn.ModuleList([Block(config) for _ in range(config.layers)]),
                norm=nn.LayerNorm(config.width),
            )
        )
        self.head = nn.Linear(config.width, config.vocabulary, bias=False)
        self.apply(self._start)
        # One matrix serves as embedding and as output (Press and Wolf 2017).
        self.transformer.tokens.weight = self.head.weight

    def _start(self, module):
        if isinstance(module, (nn.Linear, nn.Embedding)):
            residual = getattr(module, "is_residual", False)
            std = 0.02 / math.sqrt(2 * self.config.layers) if residual else 0.02
            nn.init.normal_(module.weight, mean=0.0, std=std)
        if isinstance(module, nn.Linear) and module.bias is not None:
            nn.init.zeros_(module.bias)

    def parameter_count(self):
        """Parameters without the positions, as GPT-2 counts them."""
        return sum(p.numel() for p in self.parameters()) - self.transformer.positions.weight.numel()

    def forward(self, index, targets=None):
        time = index.size(1)
        if time > self.config.block:
            raise ValueError(f"{time} bytes do not fit into a block of {self.config.block}")
        positions = torch.arange(time, device=index.device)
        x = self.transformer.tokens(index) + self.transformer.positions(positions)
        x = self.transformer.drop(x)
        for block in self.transformer.blocks:
            if self.config.checkpoint and self.training:
                x = checkpoint(block, x, use_reentrant=False)
            else:
                x = block(x)
        x = self.transformer.norm(x)
        if targets is None:
            return self.head(x[:, [-1], :]), None
        logits = self.head(x)
        loss = F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1), ignore_index=-1)
        return logits, loss

    def configure_optimizers(self, lr, weight_decay, betas=(0.9, 0.95)):
        """AdamW that shrinks matrices, and leaves biases and norms alone."""
        params = [p for p in self.parameters() if p.requires_grad]
        groups = [
            {"params": [p for p in params if p.dim() >= 2], "weight_decay": weight_decay},
            {"params": [p for p in params if p.dim() < 2], "weight_decay": 0.0},
        ]
        return torch.optim.AdamW(groups, lr=lr, betas=betas)

    @torch.no_grad()
    def generate(self, index, count, temperature=1.0, top_k=None):
        """`count` more bytes, each drawn from the `top_k` likeliest."""
        self.eval()
        for _ in range(count):
            logits, _ = self(index[:, -self.config.block :])
            logits = logits[:, -1, :] / temperature
            if top_k is not None:
                best, _ = torch.topk(logits, min(top_k, logits.size(-1)))
                logits = logits.masked_fill(logits < best[:, [-1]], float("-inf"))
            drawn = torch.multinomial(F.softmax(logits, dim=-1), num_samples=1)
            index = torch.cat((index, drawn), dim=1)
        return index


def read_corpus(limit):
    """The first `limit` bytes of the standard library's modules, in the order of their names."""
    paths = sorted(Path(sysconfig.get_paths()["stdlib"]).glob("*.py"))
    text = b"\n".join(path.read_bytes() for path in paths)
    return np.frombuffer(text[:limit], dtype=np.uint8)


class Batches:
    """Random stretches of the corpus; the last tenth is held out."""

    def __init__(self, corpus, block, batch, device):
        cut = len(corpus) * 9 // 10
        self.parts = {
            "train": torch.tensor(corpus[:cut]),
            "held out": torch.tensor(corpus[cut:]),
        }
        self.block, self.batch, self.device = block, batch, device
        # 32 bits are the natural width of integers on a GPU.
        self.dtype = torch.int32 if str(device).startswith("gpu") else torch.long

    def draw(self, part):
        """Bytes, and the bytes that follow them."""
        data = self.parts[part]
        starts = torch.randint(len(data) - self.block, (self.batch,)).tolist()
        x = torch.stack([data[i : i + self.block] for i in starts]).to(self.dtype)
        y = torch.stack([data[i + 1 : i + 1 + self.block] for i in starts]).to(self.dtype)
        return x.to(self.device), y.to(self.device)


class Progress:
    """A bar on a terminal, and nothing elsewhere."""

    def __init__(self, total, live):
        self.total, self.start = total, time.perf_counter()
        self.live = live and sys.stderr.isatty()

    def show(self, done, text):
        if self.live:
            filled = 30 * done // self.total
            left = (time.perf_counter() - self.start) / max(done, 1) * (self.total - done)
            bar = "━" * filled + "─" * (30 - filled)
            sys.stderr.write(
                f"\r\x1b[36m{bar}\x1b[0m {done / self.total:4.0%}  {text}  {left:3.0f} s left\x1b[K"
            )
            sys.stderr.flush()

    def clear(self):
        if self.live:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


class Trainer:
    """Model, optimiser, schedule and records of one run."""

    def __init__(self, options):
        torch.manual_seed(options.seed)
        self.options = options
        self.rank, self.ranks = (dist.get_rank(), dist.get_world_size()) if options.distributed else (0, 1)
        self.step, self.history, self.losses = 0, [], []
        self.pending = []  # losses that are still on the device
        state = torch.load(options.resume, map_location=options.device) if options.resume else None
        config = Config(**state["config"]) if state else PRESETS[options.preset]
        self.config = Config(
            **{**asdict(config), "checkpoint": options.checkpoint, "fused": not options.spelled_out}
        )
        self.model = self.parallel = GPT(self.config).to(options.device)
        if options.distributed:
            extra = {"grain": options.grain} if options.grain else {}
            self.parallel = DistributedDataParallel(self.model, **extra)
            if not options.grain:
                torch.manual_seed(options.seed + 1 + self.rank)  # batches and dropout of its own
        self.optimizer = self.model.configure_optimizers(options.lr, options.weight_decay)
        self.scaler = torch.amp.GradScaler(enabled=options.amp == "f16")
        self.batches = Batches(read_corpus(options.bytes), self.config.block, options.batch, options.device)
        if state:
            self.model.load_state_dict(state["model"])
            self.optimizer.load_state_dict(state["optimizer"])
            self.step, self.history, self.losses = state["step"], state["history"], state["losses"]

    def save(self, path):
        """Everything that a later run needs to go on."""
        state = {
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "config": asdict(self.config),
            "step": self.step,
            "history": self.history,
            "losses": self.losses,
        }
        torch.save(state, path)

    def precision(self):
        """The region of mixed precision, if any."""
        if self.options.amp is None:
            return contextlib.nullcontext()
        kind = torch.device(self.options.device).type
        return torch.autocast(kind, dtype={"bf16": torch.bfloat16, "f16": torch.float16}[self.options.amp])

    def learning_rate(self):
        """Linear warm-up, then half a cosine down to a tenth."""
        options = self.options
        if self.step < options.warmup:
            return options.lr * (self.step + 1) / options.warmup
        done = min(1.0, (self.step - options.warmup) / max(1, options.steps - options.warmup))
        return options.lr * (0.1 + 0.45 * (1.0 + math.cos(math.pi * done)))

    def loss(self):
        """The loss of a batch, as `backward` wants it."""
        x, y = self.batches.draw("train")
        with self.precision():
            _, loss = self.parallel(x, y)
            return self.scaler.scale(loss / self.options.accumulate)

    def gradients(self, last):
        """Adds the gradients of one batch; after the last batch of a step, ranks average theirs."""
        if self.options.grain:
            loss = self.parallel.backward(self.loss)
        else:
            alone = self.options.distributed and not last
            with self.parallel.no_sync() if alone else contextlib.nullcontext():
                loss = self.loss()
                loss.backward()
        return loss.detach() / self.scaler.get_scale()

    def update(self):
        """One step of the optimiser: the loss, and the norm of the gradient before clipping."""
        self.model.train()
        for group in self.optimizer.param_groups:
            group["lr"] = self.learning_rate()
        total = sum(self.gradients(i + 1 == self.options.accumulate) for i in range(self.options.accumulate))
        self.scaler.unscale_(self.optimizer)
        norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.options.clip)
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.optimizer.zero_grad(set_to_none=True)
        self.step += 1
        self.pending.append(total)
        return total, norm

    @torch.no_grad()
    def evaluate(self, count):
        """The mean loss over `count` batches of either part."""
        self.model.eval()
        found = []
        for part in ("train", "held out"):
            losses = []
            for _ in range(count):
                with self.precision():
                    losses.append(self.model(*self.batches.draw(part))[1].item())
            found.append(sum(losses) / count)
        return found

    def run(self):
        """All steps, with a line of the table every `--every` of them."""
        options, progress = self.options, Progress(self.options.steps, self.rank == 0)
        print(f"{'step':>6} {'train loss':>11} {'held out':>9} {'gradient':>9} {'rate':>9} {'bytes/s':>9}")
        rate, start, since, norm = self.learning_rate(), time.perf_counter(), self.step, None
        while self.step < options.steps:
            if self.step % options.every == 0 or norm is None:
                self.report(rate, norm, since, start, progress)
                start, since = time.perf_counter(), self.step
            rate = self.learning_rate()
            loss, norm = self.update()
            if progress.live:
                progress.show(self.step, f"loss {loss.item():.3f}")
        self.report(rate, norm, since, start, progress)

    def report(self, rate, norm, since, start, progress):
        """One line of the table."""
        seconds = time.perf_counter() - start
        batches = (self.options.grain or self.ranks) * self.options.accumulate
        done = (self.step - since) * batches * self.options.batch * self.config.block
        if self.pending:
            losses = torch.stack(self.pending)
            if self.options.distributed and not self.options.grain:
                dist.all_reduce(losses)
                losses = losses / self.ranks
            self.losses += losses.tolist()
            self.pending = []
        train, held_out = self.evaluate(self.options.evaluate)
        self.history.append((self.step, train, held_out))
        progress.clear()
        size = f"{norm.item():>9.3f}" if norm is not None else f"{'':>9}"
        speed = f"{done / seconds:>9.0f}" if done else ""
        print(f"{self.step:>6} {train:>11.4f} {held_out:>9.4f} {size} {rate:>9.2e} {speed}", flush=True)

    def sample(self, prompt, count):
        """The model's continuation of a text."""
        start = torch.tensor([list(prompt.encode())]).to(self.batches.dtype).to(self.options.device)
        found = self.model.generate(start, count, temperature=0.8, top_k=20)
        return bytes(i for i in found[0].tolist() if i < 256).decode("utf-8", errors="replace")


def draw(path, history, losses, config):
    """Writes the losses as PNG."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    steps, train, held_out = zip(*history)
    figure = Figure(figsize=(8, 4.6), dpi=130, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    axes.plot(range(1, len(losses) + 1), losses, color="#2563eb", alpha=0.25, linewidth=0.8)
    for values, color, name in ((train, "#2563eb", "training"), (held_out, "#d97706", "held out")):
        axes.plot(steps, values, color=color, linewidth=2, marker="o", markersize=3, label=name)
    axes.axhline(math.log(256), color="#6b7280", linewidth=1, linestyle=(0, (4, 3)))
    axes.annotate("guessing", (steps[-1], math.log(256)), (-4, -12), textcoords="offset points", ha="right")
    axes.set_title(
        f"{config.layers} layers, {config.width} wide: nats per byte of the standard library",
        loc="left",
        fontweight="bold",
    )
    axes.set_xlabel("step")
    axes.set_ylim(0, None)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(color="#e5e7eb")
    axes.legend(frameon=False)
    figure.savefig(path)


def parse(arguments=None):
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--preset", choices=sorted(PRESETS), default="small")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--amp", choices=["bf16", "f16"], help="mixed precision; f16 with loss scaling")
    parser.add_argument("--checkpoint", action="store_true", help="recompute each block in backward")
    parser.add_argument(
        "--spelled-out", action="store_true", help="attention from its parts, not in one call"
    )
    parser.add_argument("--distributed", action="store_true", help="as one of the processes of mpirun")
    parser.add_argument("--grain", type=int, help="batches of a step, divided among processes")
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--batch", type=int, default=12)
    parser.add_argument("--accumulate", type=int, default=1, help="batches per step")
    parser.add_argument("--lr", type=float, default=2e-3)
    parser.add_argument("--warmup", type=int, default=40)
    parser.add_argument("--weight-decay", type=float, default=0.1)
    parser.add_argument("--clip", type=float, default=1.0, help="largest norm of the gradient")
    parser.add_argument("--every", type=int, default=100, help="steps between lines of the table")
    parser.add_argument("--evaluate", type=int, default=16, help="batches of each evaluation")
    parser.add_argument(
        "--bytes", type=int, default=4_000_000, help="how much of the standard library to read"
    )
    parser.add_argument("--sample", type=int, default=400, help="bytes to write in the end")
    parser.add_argument("--prompt", default="\ndef ")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--resume", type=Path, help="a file that an earlier run saved")
    parser.add_argument(
        "--out", type=Path, default=Path(), help="folder for picture and model (default: here)"
    )
    return parser.parse_args(arguments)


def main(arguments=None):
    """Trains, saves, samples, draws; returns the trainer."""
    options = parse(arguments)
    if options.grain and not options.distributed:
        raise SystemExit("--grain is for --distributed")
    if options.distributed:
        dist.init_process_group()
    trainer = Trainer(options)
    # One log, from the first process.
    with contextlib.redirect_stdout(None) if trainer.rank else contextlib.nullcontext():
        train(trainer, options)
    return trainer


def train(trainer, options):
    """Trains, saves, samples and draws, with a log."""
    extras = [f"autocast {options.amp}"] if options.amp else []
    extras += ["checkpointed"] if options.checkpoint else []
    extras += [f"{trainer.ranks} processes"] if options.distributed else []
    described = [f"{trainer.model.parameter_count():,} parameters on {options.device}", *extras]
    print(", ".join(described))
    print(f"{len(trainer.batches.parts['train']):,} bytes to learn from, {trainer.config.block} at a time\n")
    start = time.perf_counter()
    trainer.run()
    print(f"\n{time.perf_counter() - start:.1f} s of training")
    if trainer.rank:
        return
    options.out.mkdir(parents=True, exist_ok=True)
    trainer.save(options.out / "gpt.pt")
    draw(options.out / "gpt.png", trainer.history, trainer.losses, trainer.config)
    print(f"model and picture: {(options.out / 'gpt.pt').resolve()}, {(options.out / 'gpt.png').resolve()}")
    if options.sample:
        print("\n" + trainer.sample(options.prompt, options.sample).strip())


if __name__ == "__main__":
    main()
