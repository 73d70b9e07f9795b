"""Modes and settings: gradients off, inference, autocast, dtypes, threads, interruptions."""

import threading

import wengert as wg
from staging.comparing import case, copied, raised
from wengert import distributions, nn, optim


def ones():
    return wg.ones(2)


@case
def around(jit):
    f = jit(lambda x: x * 2 if wg.is_grad_enabled() else x * 3)
    yield f(ones())
    with wg.no_grad():
        yield f(ones())
    yield f(ones())
    with wg.inference_mode():
        yield f(ones())
    yield f(ones())


@case(traces=3)
def around_a_backward(jit):
    weight = wg.ones(2, requires_grad=True)

    @jit
    def f(x):
        weight.grad = None
        y = (weight * x).sum()
        if y.requires_grad:
            y.backward()
        return y.detach()

    yield f(ones()), weight.grad
    with wg.no_grad():
        yield f(ones()), weight.grad
    yield f(ones()), weight.grad
    weight.requires_grad_(False)
    yield f(ones()), weight.grad


@case
def inference_tensors(jit):
    f = jit(lambda x: x * 2)
    yield f(ones()).is_inference()
    with wg.inference_mode():
        made = ones()
        yield f(ones()).is_inference()
    yield f(ones()).is_inference()
    yield f(made), f(made).is_inference()


@case(traces=1)
def no_grad_inside(jit):
    weight = wg.ones(2, requires_grad=True)

    @jit
    def f(x):
        with wg.no_grad():
            weight.add_(x)
        weight.grad = None
        (weight * weight).sum().backward()
        return weight.detach()

    for _ in range(3):
        yield f(ones())
        yield weight.grad


@case
def enable_grad_inside(jit):
    @jit
    @wg.no_grad()
    def f(x):
        with wg.enable_grad():
            y = x.detach().requires_grad_()
            (y * y).sum().backward()
        return y.grad, wg.is_grad_enabled()

    for k in (1, 2, 3):
        yield f(ones() * k)


@case
def a_mode_that_stays(jit):
    @jit
    def f(x):
        wg.set_grad_enabled(False)
        return x * 2

    for _ in range(3):
        wg.set_grad_enabled(True)
        yield f(ones())
        yield wg.is_grad_enabled()
    wg.set_grad_enabled(True)


@case
def inference_mode_inside(jit):
    model = nn.Linear(2, 2)

    @jit
    def f(x):
        with wg.inference_mode():
            return model(x)

    for k in (1, 2, 3):
        y = f(ones() * k)
        yield y, y.is_inference(), y.requires_grad


@case(traces=3)
def autocast_around(jit):
    model = nn.Linear(4, 2)
    x = wg.randn(3, 4)
    f = jit(lambda x: model(x).detach())
    for i in range(4):
        with wg.autocast("cpu", dtype=wg.bfloat16, enabled=bool(i % 2)):
            yield f(x)
    for i in range(4):
        with wg.autocast("cpu", dtype=(wg.bfloat16, wg.float16)[i % 2]):
            yield f(x)


@case(traces=2)
def autocast_around_training(jit):
    model = nn.Sequential(nn.Linear(4, 4), nn.LayerNorm(4), nn.Linear(4, 1))
    optimizer = optim.Adam(model.parameters())

    @jit
    def step(x):
        optimizer.zero_grad()
        loss = model(x).float().square().mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    for i in range(6):
        with wg.autocast("cpu", dtype=wg.bfloat16, enabled=i % 3 != 1):
            yield step(wg.randn(3, 4))
            yield copied(model.state_dict())


@case(traces=1)
def autocast_inside(jit):
    model = nn.Sequential(nn.Linear(4, 4), nn.LayerNorm(4), nn.Linear(4, 1))
    optimizer = optim.Adam(model.parameters())

    @jit
    def step(x):
        optimizer.zero_grad()
        with wg.autocast("cpu", dtype=wg.bfloat16):
            loss = model(x).float().square().mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    for _ in range(4):
        yield step(wg.randn(3, 4))
        yield copied(model.state_dict())


@case(traces=2)
def a_gradient_scaler(jit):
    model = nn.Linear(4, 1)
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    for enabled in (True, False):
        scaler = wg.amp.GradScaler("cpu", enabled=enabled, growth_interval=2)

        @jit
        def step(x):
            optimizer.zero_grad()
            loss = model(x).square().mean()
            scaler.scale(loss).backward()  # noqa: B023 (called in this turn)
            scaler.unscale_(optimizer)  # noqa: B023
            scaler.step(optimizer)  # noqa: B023
            scaler.update()  # noqa: B023
            return loss.detach()

        for i in range(5):
            yield step(wg.randn(3, 4) * (float("inf") if i == 2 else 1.0))
            yield copied(model.state_dict()), scaler.get_scale()


@case
def the_default_dtype_around(jit):
    f, g = jit(lambda x: x + wg.zeros(2)), jit(lambda x: x + 1.5)
    try:
        for dtype in (wg.float32, wg.float64, wg.float32):
            wg.set_default_dtype(dtype)
            yield f(wg.ones(2, dtype=wg.float16))
            yield g(wg.ones(2, dtype=wg.int32))
    finally:
        wg.set_default_dtype(wg.float32)


@case
def the_default_dtype_inside(jit):
    @jit
    def f(x):
        wg.set_default_dtype(wg.float64)
        return x * 2

    try:
        for _ in range(3):
            wg.set_default_dtype(wg.float32)
            yield f(ones())
            yield wg.get_default_dtype()
    finally:
        wg.set_default_dtype(wg.float32)


@case
def training_and_evaluation_inside(jit):
    layer = nn.Dropout(0.5)

    @jit
    def both(x):
        layer.eval()
        y = layer(x)
        layer.train()
        return y + layer(x)

    @jit
    def evaluated(x):
        layer.eval()
        return layer(x)

    for f in (both, both, evaluated, evaluated, both):
        for training in (True, False):
            layer.train(training)
            yield f(wg.ones(4))
            yield layer.training


@case
def a_thread_without_gradients(jit):
    f = jit(lambda x: x * 2 if wg.is_grad_enabled() else x * 3)
    f(ones())
    results = []

    def work():
        with wg.no_grad():
            results.append(f(ones()))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    yield results, f(ones())


@case
def threads_that_train(jit):
    model = nn.Linear(2, 2)
    optimizer = optim.SGD(model.parameters(), lr=0.01)
    lock, wrong = threading.Lock(), []

    @jit
    def step(x):
        optimizer.zero_grad()
        model(x).sum().backward()
        optimizer.step()
        return x * 2

    def work():
        for _ in range(20):
            with lock:
                if step(ones()).tolist() != [2.0, 2.0]:
                    wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    yield wrong, copied(model.state_dict())


@case
def threads_without_a_lock(jit):
    weight = wg.arange(4.0)
    f = jit(lambda x: (x * weight).cumsum(0) + x.sum())
    wrong = []

    def work(k):
        expected = (wg.full((4,), float(k)) * weight).cumsum(0) + 4 * k
        for _ in range(30):
            if not wg.equal(f(wg.full((4,), float(k))), expected):
                wrong.append(k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    yield wrong


@case
def an_interruption(jit):
    interrupts = [False]

    @jit
    def f(x):
        y = x * 2
        if interrupts[0]:
            raise KeyboardInterrupt
        return y

    yield f(ones())
    interrupts[0] = True
    try:
        f(ones())
    except KeyboardInterrupt:
        yield "interrupted"
    interrupts[0] = False
    yield f(ones())
    yield ones() * 2


@case(traces=1)
def deterministic_algorithms(jit):
    f = jit(lambda x: wg.zeros(3).index_add_(0, wg.tensor([0, 0]), x))
    try:
        for on in (False, True, False):
            wg.use_deterministic_algorithms(on)
            yield f(ones())
    finally:
        wg.use_deterministic_algorithms(False)


@case
def an_initial_seed_that_is_read(jit):
    f = jit(lambda x: x * wg.initial_seed())
    for seed in (3, 4, 3):
        wg.manual_seed(seed)
        yield f(ones())


@case
def a_number_of_threads_that_is_read(jit):
    f = jit(lambda x: x * wg.get_num_threads())
    kept = wg.get_num_threads()
    try:
        for count in (1, 2, 1):
            wg.set_num_threads(count)
            yield f(ones())
    finally:
        wg.set_num_threads(kept)


@case
def settings_of_algorithms_that_are_read(jit):
    f = jit(lambda x: (x, wg.are_deterministic_algorithms_enabled(), wg.get_float32_matmul_precision()))
    kept = wg.get_float32_matmul_precision()
    try:
        yield f(ones())
        wg.use_deterministic_algorithms(True)
        yield f(ones())
        wg.set_float32_matmul_precision("medium")
        yield f(ones())
    finally:
        wg.use_deterministic_algorithms(False)
        wg.set_float32_matmul_precision(kept)


@case
def validation_of_distributions(jit):
    f = jit(lambda x: distributions.Normal(x, x).log_prob(x))
    try:
        for on in (True, False, True):
            distributions.Distribution.set_default_validate_args(on)
            yield str(raised(f, ones() * 2)), str(raised(f, -ones()))
    finally:
        distributions.Distribution.set_default_validate_args(True)


@case(traces=2)
def a_number_of_threads(jit):
    f = jit(lambda x: (x * x.sin()).sum())
    count = wg.get_num_threads()
    x = wg.randn(20000)
    try:
        for threads in (1, 2, 1):
            wg.set_num_threads(threads)
            yield f(x)
    finally:
        wg.set_num_threads(count)


@case
def gradients_of_ieee_that_are_switched_on(jit):
    def g(x):
        wg.ieee_gradients(True)
        return x * 2

    f = jit(g)
    slope = wg.grad(lambda x: wg.where(x > 0, x.sqrt(), x))
    try:
        for _ in range(3):
            wg.ieee_gradients(False)
            f(ones())
            yield slope(wg.tensor(0.0)).item()
    finally:
        wg.ieee_gradients(False)


@case
def a_number_of_threads_that_is_set(jit):
    kept = wg.get_num_threads()

    @jit
    def f(x):
        wg.set_num_threads(1)
        return x * 2

    try:
        for _ in range(3):
            wg.set_num_threads(2)
            f(ones())
            yield wg.get_num_threads()
    finally:
        wg.set_num_threads(kept)
