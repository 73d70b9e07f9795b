"""Count what GPU kernels do: memory accesses, arithmetic and barriers in the SPIR-V that naga writes.

    python benches/gpu/counts.py                      every case, as a table
    python benches/gpu/counts.py softmax add          those with one of these words in the name
    python benches/gpu/counts.py --output FILE        and write the table

Each case runs in a process of its own on the adapter that there is (in software: WENGERT_GPU=software), under
`wengert.gpu.profile`, which tells its launches and their bytes. The text of each kernel becomes SPIR-V
(`cargo run --example spirv`), and what its entry point reaches is counted, functions as often as they are
called. Nothing is timed. The last table is kept in benches/results/gpu_counts.md.
"""

import argparse
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import wengert as wg

ROOT = Path(__file__).parents[2]
KINDS = ("load", "bytes loaded", "store", "bytes stored", "parameter", "shared", "bytes shared", "division")
KINDS = (*KINDS, "arithmetic", "barrier")
HEAD = """# What the GPU kernels do

Counted, not timed, by `python benches/gpu/counts.py` on {adapter}: the instructions that
one thread meets in the SPIR-V of a kernel without checks at run time. `a + b` is a outside of loops and b
inside, each loop gone through once; both sides of a branch count. Loads and stores are those of storage
buffers, with their bytes; parameters are loads of the uniform block. The bytes of workgroup memory that a
kernel has stand before its accesses (shared) with their bytes. Divisions are of integers, remainders
included; a vector's arithmetic counts as that of its elements. Bytes of a launch are those of its operands,
each once; a kernel's row stands for all its launches, with the bytes of the largest.
"""
COLUMNS = (
    "case, launches",
    "bytes",
    "loads",
    "bytes",
    "stores",
    "bytes",
    "parameters",
    "workgroup",
    "shared",
    "bytes",
    "divisions",
)
COLUMNS = (*COLUMNS, "arithmetic", "barriers")

DIVISIONS = {134, 135, 137, 138, 139}
#: Extended instructions, conversions, arithmetic, comparisons and selections, bits. A bitcast (124) is free.
ARITHMETIC = {12, *range(109, 124), *range(126, 153), *range(154, 192), *range(194, 206)} - DIVISIONS

Call = Callable[..., wg.Tensor]
Make = Callable[[], Callable[[], object]]


def tensor(shape: tuple[int, ...], dtype: str = "float32") -> wg.Tensor:
    """Random numbers on the GPU."""
    return wg.tensor(np.random.default_rng(0).standard_normal(shape).astype(dtype), device="gpu")


def forward(call: Call, *shapes: tuple[int, ...], dtype: str = "float32") -> Make:
    """The call on tensors of these shapes."""

    def make() -> Callable[[], object]:
        given = [tensor(shape, dtype) for shape in shapes]
        return lambda: call(*given)

    return make


def backward(call: Call, *shapes: tuple[int, ...], dtype: str = "float32") -> Make:
    """The backward pass of the call alone."""

    def make() -> Callable[[], object]:
        given = [tensor(shape, dtype).requires_grad_() for shape in shapes]
        out = call(*given)
        g = tensor(out.shape, dtype)
        return lambda: wg.autograd.grad(out, given, g)

    return make


def norm(x: wg.Tensor, w: wg.Tensor, b: wg.Tensor) -> wg.Tensor:
    """Layer normalisation of rows."""
    return wg.nn.functional.layer_norm(x, x.shape[-1:], w, b)


def rms(x: wg.Tensor, w: wg.Tensor) -> wg.Tensor:
    """RMS normalisation of rows."""
    return wg.nn.functional.rms_norm(x, x.shape[-1:], w)


def convolution(x: wg.Tensor, w: wg.Tensor) -> wg.Tensor:
    """Windows of 3 x 3 that keep the size of images."""
    return wg.nn.functional.conv2d(x, w, padding=1)


def biased(x: wg.Tensor, w: wg.Tensor, bias: wg.Tensor) -> wg.Tensor:
    """The same with a bias."""
    return wg.nn.functional.conv2d(x, w, bias, padding=1)


def strided(x: wg.Tensor, w: wg.Tensor) -> wg.Tensor:
    """Every other of these windows."""
    return wg.nn.functional.conv2d(x, w, stride=2, padding=1)


def depthwise(x: wg.Tensor, w: wg.Tensor) -> wg.Tensor:
    """The same windows, each channel by itself."""
    return wg.nn.functional.conv2d(x, w, padding=1, groups=x.shape[1])


def pooled(x: wg.Tensor) -> wg.Tensor:
    """Maxima of 3 x 3, every other one."""
    return wg.nn.functional.max_pool2d(x, 3, 2, 1)


def layer(x: wg.Tensor, w: wg.Tensor, b: wg.Tensor) -> wg.Tensor:
    """A product, a bias and a function."""
    return wg.nn.functional.linear(x, w, b, activation="gelu")


def attention(q: wg.Tensor, k: wg.Tensor, v: wg.Tensor) -> wg.Tensor:
    """Attention of every query to every key."""
    return wg.nn.functional.scaled_dot_product_attention(q, k, v)


def entropy(x: wg.Tensor) -> wg.Tensor:
    """Cross entropy of rows against class 1."""
    return wg.nn.functional.cross_entropy(x, wg.ones(x.shape[0], dtype=wg.int32, device="gpu"))


def scattered(x: wg.Tensor, y: wg.Tensor) -> wg.Tensor:
    """A sum by index."""
    return x.scatter_add(0, wg.arange(len(y), device="gpu"), y)


def step(optimiser: type[wg.optim.Optimizer]) -> Make:
    """A step of an optimiser with one parameter."""

    def make() -> Callable[[], object]:
        x = tensor((64, 256)).requires_grad_()
        x.grad = tensor((64, 256))
        return optimiser([x], lr=0.01).step

    return make


def clipped() -> Callable[[], object]:
    """The clipping of a gradient by its norm."""
    x = tensor((64, 256)).requires_grad_()
    x.grad = tensor((64, 256))
    return lambda: wg.nn.utils.clip_grad_norm_([x], 1.0)


def chain(x: wg.Tensor, y: wg.Tensor) -> wg.Tensor:
    """Eight cheap operations."""
    for _ in range(4):
        x = x * y + 1.0
    return x


def staged(call: Call, *shapes: tuple[int, ...]) -> Make:
    """The program of a call."""

    def make() -> Callable[[], object]:
        arguments = [tensor(shape) for shape in shapes]
        program = wg.jit(call)
        for _ in range(2):
            program(*arguments)
        return lambda: program(*arguments)

    return make


CASES: dict[str, Make] = {
    "add 64x256": forward(lambda a, b: a + b, (64, 256), (64, 256)),
    "add float16 64x256": forward(lambda a, b: a + b, (64, 256), (64, 256), dtype="float16"),
    "add 63x255": forward(lambda a, b: a + b, (63, 255), (63, 255)),
    "times 3, 64x256": forward(lambda a: a * 3.0, (64, 256)),
    "add a row, 64x256": forward(lambda a, b: a + b, (64, 256), (256,)),
    "add a column, 64x256": forward(lambda a, b: a + b, (64, 256), (64, 1)),
    "add to a slice, 64x128": forward(lambda a, b: a[:, 64:192] + b, (64, 256), (64, 128)),
    "tanh backward 64x256": backward(lambda a: a.tanh(), (64, 256)),
    "where 64x256": forward(lambda a, b: wg.where(a > b, a, b), (64, 256), (64, 256)),
    "to float16, 64x256": forward(lambda a: a.half(), (64, 256)),
    "chain of 8, one by one, 64x256": forward(chain, (64, 256), (64, 256)),
    "chain of 8, a program, 64x256": staged(chain, (64, 256), (64, 256)),
    "chain of 8 with a row, a program, 64x256": staged(chain, (64, 256), (256,)),
    "chain of 8 and its sum, a program, 64x256": staged(lambda a, b: chain(a, b).sum(), (64, 256), (64, 256)),
    "transpose 64x256": forward(lambda a: a.t().contiguous(), (64, 256)),
    "transpose float16 64x256": forward(lambda a: a.t().contiguous(), (64, 256), dtype="float16"),
    "heads 2x16x4x32": forward(lambda a: a.permute(0, 2, 1, 3).contiguous(), (2, 16, 4, 32)),
    "sum 64x256": forward(lambda a: a.sum(), (64, 256)),
    "sum of rows 512x256": forward(lambda a: a.sum(-1), (512, 256)),
    "sum of rows 4x65536": forward(lambda a: a.sum(-1), (4, 65536)),
    "sum of rows float16 512x1024": forward(lambda a: a.sum(-1), (512, 1024), dtype="float16"),
    "sum of columns 256x64": forward(lambda a: a.sum(0), (256, 64)),
    "max of rows 64x2048": forward(lambda a: a.amax(-1), (64, 2048)),
    "argmax 1x65536": forward(lambda a: a.argmax(), (65536,)),
    "argmax of rows 64x256": forward(lambda a: a.argmax(-1), (64, 256)),
    "softmax 64x256": forward(lambda a: a.softmax(-1), (64, 256)),
    "softmax 8x4096": forward(lambda a: a.softmax(-1), (8, 4096)),
    "softmax 2x32768": forward(lambda a: a.softmax(-1), (2, 32768)),
    "softmax backward 64x256": backward(lambda a: a.softmax(-1), (64, 256)),
    "log_softmax 64x256": forward(lambda a: a.log_softmax(-1), (64, 256)),
    "layer_norm 64x768": forward(norm, (64, 768), (768,), (768,)),
    "layer_norm backward 64x768": backward(norm, (64, 768), (768,), (768,)),
    "layer_norm backward 2048x64": backward(norm, (2048, 64), (64,), (64,)),
    "rms_norm 64x768": forward(rms, (64, 768), (768,)),
    "rms_norm backward 64x768": backward(rms, (64, 768), (768,)),
    "cross_entropy 64x1000": forward(entropy, (64, 1000)),
    "cross_entropy backward 64x1000": backward(entropy, (64, 1000)),
    "softmax backward 2x65536": backward(lambda a: a.softmax(-1), (2, 65536)),
    "layer_norm 2x65536": forward(norm, (2, 65536), (65536,), (65536,)),
    "layer_norm backward 2x65536": backward(norm, (2, 65536), (65536,), (65536,)),
    "rms_norm 2x65536": forward(rms, (2, 65536), (65536,)),
    "rms_norm backward 2x65536": backward(rms, (2, 65536), (65536,)),
    "cross_entropy 2x65536": forward(entropy, (2, 65536)),
    "rows 512 of 1000x64": forward(lambda a: a[wg.arange(512, device="gpu")], (1000, 64)),
    "tril 64x256": forward(lambda a: a.tril(), (64, 256)),
    "pad 64x256": forward(lambda a: wg.nn.functional.pad(a, (3, 5)), (64, 256)),
    "topk 10 of 100000": forward(lambda a: a.topk(10).indices, (100_000,)),
    "cummax 100000": forward(lambda a: a.cummax(0).indices, (100_000,)),
    "scatter_add 4096 to 8192": forward(scattered, (8192,), (4096,)),
    "AdamW 64x256": step(wg.optim.AdamW),
    "SGD 64x256": step(wg.optim.SGD),
    "RMSprop 64x256": step(wg.optim.RMSprop),
    "clip 64x256": clipped,
    "matmul 64x64x64": forward(lambda a, b: a @ b, (64, 64), (64, 64)),
    "matmul 1536x32x1536": forward(lambda a, b: a @ b, (1536, 32), (32, 1536)),
    "matmul 128x2048x128": forward(lambda a, b: a @ b, (128, 2048), (2048, 128)),
    "matmul 8x2048x256": forward(lambda a, b: a @ b, (8, 2048), (2048, 256)),
    "matmul float16 64x64x64": forward(lambda a, b: a @ b, (64, 64), (64, 64), dtype="float16"),
    "matmul float16 1536x32x1536": forward(lambda a, b: a @ b, (1536, 32), (32, 1536), dtype="float16"),
    "matmul float16 8x2048x256": forward(lambda a, b: a @ b, (8, 2048), (2048, 256), dtype="float16"),
    "matmul backward 64x64x64": backward(lambda a, b: a @ b, (64, 64), (64, 64)),
    "conv2d 8x32x16x16 by 64x32x3x3": forward(convolution, (8, 32, 16, 16), (64, 32, 3, 3)),
    "conv2d with a bias 8x32x16x16 by 64x32x3x3": forward(biased, (8, 32, 16, 16), (64, 32, 3, 3), (64,)),
    "conv2d 48x8x16x16 by 128x8x3x3": forward(convolution, (48, 8, 16, 16), (128, 8, 3, 3)),
    "conv2d float16 8x32x16x16 by 64x32x3x3": forward(
        convolution, (8, 32, 16, 16), (64, 32, 3, 3), dtype="float16"
    ),
    "conv2d backward 8x32x16x16 by 64x32x3x3": backward(convolution, (8, 32, 16, 16), (64, 32, 3, 3)),
    "conv2d stride 2 backward 8x32x16x16 by 64x32x3x3": backward(strided, (8, 32, 16, 16), (64, 32, 3, 3)),
    "conv2d depthwise 4x32x16x16": forward(depthwise, (4, 32, 16, 16), (32, 1, 3, 3)),
    "conv2d depthwise backward 4x32x16x16": backward(depthwise, (4, 32, 16, 16), (32, 1, 3, 3)),
    "max_pool2d backward 4x32x56x56": backward(pooled, (4, 32, 56, 56)),
    "matrix by vector 256x256": forward(lambda a, b: a @ b, (256, 256), (256,)),
    "layer 64x256x128": forward(layer, (64, 256), (128, 256), (128,)),
    "layer backward 64x256x128": backward(layer, (64, 256), (128, 256), (128,)),
    "attention 2x4x128x64": forward(attention, *[(2, 4, 128, 64)] * 3),
    "attention float16 2x4x128x64": forward(attention, *[(2, 4, 128, 64)] * 3, dtype="float16"),
    "attention backward float16 2x4x128x64": backward(attention, *[(2, 4, 128, 64)] * 3, dtype="float16"),
}


def run(name: str) -> dict[str, list]:
    """The launches of a case, and the texts of its kernels."""
    call = CASES[name]()
    wg.gpu.synchronize()
    before = wg._core._gpu_texts(0)
    with wg.gpu.profile() as found:
        call()
    launches = [(x.kernel, x.variant, x.bytes) for x in found.launches]
    new = [kernel for kernel in wg._core._gpu_texts(0) if kernel not in before]
    # What the inputs have compiled already: the text of that name.
    ran, compiled = {x.kernel for x in found.launches}, {kernel for kernel, _, _ in new}
    return {"launches": launches, "kernels": new + [x for x in before if x[0] in ran - compiled]}


class Module:
    """A SPIR-V module: its functions, as counts outside and inside of loops, and its workgroup memory. Blocks
    that no path reaches, since a condition is a constant, count nothing."""

    def __init__(self, words: np.ndarray) -> None:
        self.types: dict[int, tuple] = {}
        self.type_of: dict[int, int] = {}
        self.constants: dict[int, int] = {}
        self.entries: dict[str, int] = {}
        self.own: dict[int, list[Counter]] = {}
        self.calls: dict[int, list[Counter]] = {}
        self.workgroup: dict[int, int] = {}  # bytes of variables
        self.used: dict[int, set[int]] = {}
        at, function = 5, 0
        blocks: dict[int, list[tuple[int, list[int]]]] = {}
        label = 0
        while at < len(words):
            opcode, length = int(words[at]) & 0xFFFF, int(words[at]) >> 16
            args = [int(word) for word in words[at + 1 : at + length]]
            if opcode == 15:  # an entry point
                text = words[at + 3 : at + length].tobytes()
                self.entries[text[: text.index(b"\0")].decode()] = args[1]
            elif opcode in (20, 21, 22):  # a bool, an integer, a float
                self.types[args[0]] = ("number", 1, 4 if opcode == 20 else args[1] // 8)
            elif opcode == 23:  # a vector
                self.types[args[0]] = ("number", args[2], args[2] * self.types[args[1]][2])
            elif opcode == 28:  # an array
                count = self.constants[args[2]]
                self.types[args[0]] = ("array", count, count * self.types.get(args[1], ("", 1, 4))[2])
            elif opcode == 59 and args[2] == 4:
                self.workgroup[args[1]] = self.types[self.types[args[0]][2]][2]
            elif opcode == 32:  # a pointer
                self.types[args[0]] = ("pointer", args[1], args[2])
            elif opcode in (41, 42):  # true, false
                self.constants[args[1]] = opcode == 41
            elif opcode == 43:
                self.constants[args[1]] = args[2]
            elif opcode == 54:  # a function
                function, blocks = args[1], {}
            elif opcode == 248:
                label = args[0]
                blocks[label] = []
            elif opcode == 56:
                self.add(function, blocks)
            elif blocks:
                blocks[label].append((opcode, args))
            if opcode in (55, 59, 65, 66):
                self.type_of[args[1]] = args[0]
            at += length

    def add(self, function: int, blocks: dict[int, list[tuple[int, list[int]]]]) -> None:
        """Adds a function of these blocks, which are in the order of the text."""
        self.own[function], self.calls[function] = [Counter(), Counter()], [Counter(), Counter()]
        self.used[function] = set()
        reached, waiting, later = set(), [next(iter(blocks))], []
        loads, stores = {}, {}  # of local variables: a && b is one
        while waiting or later:
            if not waiting:  # all that leads to this branch is known
                condition, yes, no = later.pop(0)
                known = stores.get(loads[condition], {None})
                waiting += [yes, no] if len(known) != 1 or None in known else [yes if min(known) else no]
                continue
            label = waiting.pop()
            if label in reached:
                continue
            reached.add(label)
            for opcode, args in blocks[label]:
                if opcode == 61:
                    loads[args[1]] = args[2]
                elif opcode == 62:
                    stores.setdefault(args[0], set()).add(self.constants.get(args[1]))
            opcode, args = blocks[label][-1]
            if opcode == 250 and args[0] in loads:
                later.append(args[:3])
            else:
                waiting += self.followers(opcode, args)
        merges: list[int] = []
        for label, instructions in blocks.items():
            if merges and label == merges[-1]:  # the block behind a loop
                merges.pop()
            merges += [args[0] for opcode, args in instructions if opcode == 246]
            for opcode, args in instructions if label in reached else []:
                self.count(function, bool(merges), opcode, args)

    def followers(self, opcode: int, args: list[int]) -> list[int]:
        """The blocks to which the last instruction of a block may go."""
        if opcode == 249:
            return args
        if opcode == 250:
            known = self.constants.get(args[0])
            return args[1:3] if known is None else [args[1 if known else 2]]
        return [args[1], *args[3::2]] if opcode == 251 else []

    def count(self, function: int, inside: bool, opcode: int, args: list[int]) -> None:
        """Adds one instruction."""
        own = self.own[function][inside]
        if opcode in (61, 62, 65, 66):
            self.used[function].add(args[0] if opcode == 62 else args[2])
        if opcode == 57:  # a call
            self.calls[function][inside][args[2]] += 1
        elif opcode in (61, 62):
            pointer = args[2] if opcode == 61 else args[0]
            _, storage, pointee = self.types.get(self.type_of.get(pointer, 0), ("", 0, 0))
            kind, _, size = self.types.get(pointee, ("", 1, 4))
            if kind == "array":  # cleared before the kernel begins, where the host asks for that
                return
            if storage == 12:
                own["load" if opcode == 61 else "store"] += 1
                own["bytes loaded" if opcode == 61 else "bytes stored"] += size
            elif storage == 2:
                own["parameter"] += 1
            elif storage == 4:
                own.update({"shared": 1, "bytes shared": size})
        elif 227 <= opcode <= 242:  # an atomic operation on a word
            own.update({"load": 1, "bytes loaded": 4, "store": 1, "bytes stored": 4})
        elif opcode == 224:
            own["barrier"] += 1
        elif opcode in DIVISIONS or opcode in ARITHMETIC:
            size = self.types.get(args[0], ("", 1))[1]
            own["division" if opcode in DIVISIONS else "arithmetic"] += size

    def memory(self, function: int) -> set[int]:
        """The variables in workgroup memory that a call of a function may touch."""
        callees = self.calls[function][0].keys() | self.calls[function][1].keys()
        own = self.used[function] & self.workgroup.keys()
        return own.union(*(self.memory(callee) for callee in callees))

    def total(self, function: int) -> tuple[Counter, Counter]:
        """What a call of a function comes to, outside and inside of loops."""
        outside, inside = Counter(self.own[function][0]), Counter(self.own[function][1])
        for within in (False, True):
            for callee, times in self.calls[function][within].items():
                once, again = self.total(callee)
                for kind, n in once.items():
                    (inside if within else outside)[kind] += n * times
                for kind, n in again.items():
                    inside[kind] += n * times
        return outside, inside


def spirv(text: str, converter: Path | None) -> Module:
    """A WGSL text as SPIR-V."""
    command = [str(converter)] if converter else ["cargo", "run", "--quiet", "--locked", "--example", "spirv"]
    done = subprocess.run(command, cwd=ROOT, input=text.encode(), capture_output=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr.decode())
    return Module(np.frombuffer(done.stdout, np.uint32))


def lines_of(name: str, converter: Path | None) -> list[str]:
    """The lines of a case: its launches, then its kernels."""
    command = [sys.executable, __file__, "--run", name]
    found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    launches = found["launches"]
    total = sum(bytes_ for _, _, bytes_ in launches)
    rows = [[f"**{name}**: {len(launches)}", f"{total}", *[""] * (len(KINDS) + 1)]]
    for kernel, entry, text in found["kernels"]:
        module = spirv(text, converter)
        outside, inside = module.total(module.entries[entry])
        cells = [f"{outside[k]} + {inside[k]}" if inside[k] else f"{outside[k]}" for k in KINDS]
        memory = sum(module.workgroup[v] for v in module.memory(module.entries[entry]))
        cells.insert(KINDS.index("shared"), str(memory))
        moved = [bytes_ for k, _, bytes_ in launches if k == kernel]
        rows.append([f"{kernel} `{entry}`", f"{max(moved, default=0)}", *cells])
    return ["| " + " | ".join(row) + " |" for row in rows]


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("words", nargs="*", metavar="WORD", help="parts of names of cases")
    parser.add_argument("--output", type=Path, help="a Markdown file for the table")
    parser.add_argument("--converter", type=Path, help="the example, built before (default: built by cargo)")
    parser.add_argument("--run", metavar="CASE", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.run:
        print(json.dumps(run(options.run)))
        return
    names = [n for n in CASES if not options.words or any(word in n for word in options.words)]
    if not names:
        parser.error(f"no case has any of {options.words} in its name")
    text = [*HEAD.format(adapter=wg.gpu.adapters()[0]).splitlines(), "", "| " + " | ".join(COLUMNS) + " |"]
    text.append("|---" * len(COLUMNS) + "|")
    print("\n".join(text), flush=True)
    for name in names:
        lines = lines_of(name, options.converter)
        text += lines
        print("\n".join(lines), flush=True)
    if options.output:
        options.output.write_text("\n".join(text) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
