"""Functions of `nn.functional` at the places where broadcasting, odd targets and odd settings matter."""

import math

import numpy as np
import pytest
import wengert as wg
from wengert import nn
from wengert.nn import functional as F


def numbers(*shape: int) -> np.ndarray:
    return np.random.default_rng(1).normal(size=shape)


@pytest.mark.parametrize(
    ("a", "b", "dim"),
    [
        ((5, 3), (1, 3), 0),
        ((1, 3), (5, 3), 0),
        ((5, 3), (3,), 0),
        ((4, 1, 3), (1, 2, 3), 1),
        ((2, 1), (2, 4), 1),
    ],
    ids=str,
)
def test_cosine_similarity_broadcasts_first(a, b, dim):
    x, y = np.broadcast_arrays(numbers(*a), numbers(*b) + 0.5)
    want = (x * y).sum(dim) / (np.linalg.norm(x, axis=dim) * np.linalg.norm(y, axis=dim))
    got = F.cosine_similarity(wg.tensor(numbers(*a)), wg.tensor(numbers(*b) + 0.5), dim)
    np.testing.assert_allclose(got.numpy(), want, atol=1e-12)
    assert (
        nn.CosineSimilarity(dim)(wg.tensor(numbers(*a)), wg.tensor(numbers(*b) + 0.5)).tolist()
        == got.tolist()
    )


def test_cosine_similarity_of_very_long_and_short_vectors():
    long = wg.full((3,), 1e120, dtype=wg.float64)
    assert F.cosine_similarity(long, long * 1e30, 0).item() == pytest.approx(1.0)


def test_the_least_length_of_cosine_similarity_has_no_derivative():
    x = wg.tensor([0.1, 0.2], dtype=wg.float64)
    y = wg.tensor([1.0, 0.0], dtype=wg.float64)
    # With |x| < eps the function is x . y / (eps * eps').
    slope = wg.grad(lambda x: F.cosine_similarity(x, y, 0, 2.0))(x)
    np.testing.assert_allclose(slope.numpy(), [0.25, 0.0])


@pytest.mark.parametrize("widths", [(1, 2, 2, -1), (1, -1), (-1, 2), (2, 0, -2, 1), (-1, -1, 1, 1)], ids=str)
def test_circular_padding_crops_first(widths):
    x = np.arange(9.0).reshape(1, 1, 3, 3)
    want = x
    for axis, (before, after) in zip((-1, -2), zip(widths[::2], widths[1::2])):
        kept = np.arange(max(-before, 0), x.shape[axis] - max(-after, 0))
        pairs = [(0, 0)] * 4
        pairs[axis] = (max(before, 0), max(after, 0))
        want = np.pad(np.take(want, kept, axis), pairs, mode="wrap")
    got = F.pad(wg.tensor(x), widths, mode="circular")
    assert got.tolist() == want.tolist()


def test_circular_padding_beyond_what_is_left_refuses():
    with pytest.raises(ValueError, match="takes widths up to 1"):
        F.pad(wg.arange(3.0).view(1, 3), (2, -2), mode="circular")


def test_dropout_of_channels_takes_other_numbers_of_axes_and_warns():
    with pytest.warns(UserWarning, match="dropout2d: input with 3 or 4 axes expected, got shape"):
        out = F.dropout2d(wg.ones(20, 30), 0.5)
    assert set(out.flatten().tolist()) == {0.0, 2.0}
    with pytest.warns(UserWarning, match="dropout3d"):
        out = F.dropout3d(wg.ones(4, 50, 3), 0.5)
    assert out.tolist() == out[:, :, :1].expand(4, 50, 3).tolist()
    with pytest.raises(wg.ShapeError, match="dropout1d"):
        F.dropout1d(wg.ones(2, 2, 2, 2))
    with pytest.raises(wg.ShapeError, match="dropout2d"):
        F.dropout2d(wg.ones(2))


@pytest.mark.parametrize("count", [3, 5])
def test_random_numbers_of_fractional_pooling_may_be_more_than_the_images(count):
    x = wg.tensor(numbers(3, 2, 6, 6))
    u = wg.tensor(np.random.default_rng(3).random((count, 2, 2)))
    many = F.fractional_max_pool2d(x, 2, 3, _random_samples=u)
    assert many.tolist() == F.fractional_max_pool2d(x, 2, 3, _random_samples=u[:3]).tolist()
    single = F.fractional_max_pool2d(x[0], 2, 3, _random_samples=u[:1])
    assert single.tolist() == many[0].tolist()
    with pytest.raises(wg.ShapeError, match=r"expected \(1, 2, 2\)"):
        F.fractional_max_pool2d(x[0], 2, 3, _random_samples=u[0])


def test_norms_of_windows_that_end_outside_stand_for_whole_ones():
    x = np.arange(1.0, 8.0).reshape(1, 1, 7)
    got = nn.LPPool1d(2, 3, ceil_mode=True)(wg.tensor(x))
    want = [math.sqrt(1 + 4 + 9), math.sqrt(16 + 25 + 36), math.sqrt(3 * 49)]
    np.testing.assert_allclose(got.flatten().numpy(), want)
    np.testing.assert_allclose(
        nn.LPPool1d(2, 2, ceil_mode=True)(wg.ones(1, 1, 3)).numpy()[0, 0], [2**0.5] * 2
    )


UNCHANGED = [
    ((3,), 1.3, "linear"),
    ((3, 3), 1.3, "bilinear"),
    ((3, 3, 3), 1.3, "trilinear"),
    ((3, 3), 1.3, "nearest"),
]


@pytest.mark.parametrize(("shape", "scale", "mode"), UNCHANGED, ids=str)
def test_an_axis_that_keeps_its_length_is_not_resampled(shape, scale, mode):
    x = wg.arange(float(math.prod(shape))).view(1, 1, *shape)
    assert F.interpolate(x, scale_factor=scale, mode=mode).tolist() == x.tolist()
    assert nn.Upsample(scale_factor=scale, mode=mode)(x).tolist() == x.tolist()


def test_only_the_axis_that_changes_is_resampled():
    x = wg.arange(9.0).view(1, 1, 3, 3)
    both = F.interpolate(x, scale_factor=(1.3, 2.0), mode="bilinear")
    rows = [F.interpolate(x[:, :, i], scale_factor=2.0, mode="linear")[0, 0].tolist() for i in range(3)]
    assert both[0, 0].tolist() == rows
    wide = F.interpolate(x, scale_factor=(1.3, 0.9), mode="bilinear", antialias=True)
    assert wide.shape == (1, 1, 3, 2)


def test_images_of_bytes_are_rounded():
    x = np.random.default_rng(0).integers(0, 256, (1, 2, 8, 8)).astype(np.uint8)
    got = F.interpolate(wg.tensor(x), size=(4, 4), mode="bilinear")
    means = x.reshape(1, 2, 4, 2, 4, 2).astype(float).mean((3, 5))
    assert got.dtype == wg.uint8
    np.testing.assert_array_equal(got.numpy(), np.floor(means + 0.5))
    cubic = F.interpolate(wg.tensor(x), size=(5, 11), mode="bicubic", antialias=True)
    exact = F.interpolate(wg.tensor(x).double(), size=(5, 11), mode="bicubic", antialias=True)
    np.testing.assert_array_equal(cubic.numpy(), np.clip(np.floor(exact.numpy() + 0.5), 0, 255))


@pytest.mark.parametrize(
    ("dtype", "shape", "mode"),
    [("int64", (1, 1, 4, 4), "bilinear"), ("uint8", (1, 1, 4), "linear"), ("int32", (1, 1, 4, 4), "area")],
    ids=str,
)
def test_means_of_other_integers_refuse(dtype, shape, mode):
    x = wg.ones(*shape, dtype=getattr(wg, dtype))
    with pytest.raises(TypeError, match="takes floating point numbers, or uint8"):
        F.interpolate(x, size=2, mode=mode)
    assert F.interpolate(x, size=2, mode="nearest").dtype == x.dtype


@pytest.mark.parametrize("bias", [None, 0.5], ids=["plain", "bias"])
def test_linear_with_one_output_and_no_axis_for_it(bias):
    x, w = wg.tensor(numbers(4, 2, 3), requires_grad=True), wg.tensor(numbers(3), requires_grad=True)
    offset = None if bias is None else wg.tensor(bias, dtype=wg.float64)
    out = F.linear(x, w, offset)
    np.testing.assert_allclose(out.detach().numpy(), numbers(4, 2, 3) @ numbers(3) + (bias or 0.0))
    out.sum().backward()
    np.testing.assert_allclose(w.grad.numpy(), numbers(4, 2, 3).sum((0, 1)))
    np.testing.assert_allclose(x.grad.numpy(), np.broadcast_to(numbers(3), (4, 2, 3)))
    assert F.linear(wg.ones(3), wg.ones(3)).shape == ()
    with pytest.raises(wg.ShapeError, match="linear: input of shape"):
        F.linear(wg.ones(2, 3), wg.ones(2))


WINDOWS = {
    "longer than the input": (4, None, 0, 1),
    "padded": (5, 3, 1, 1),
    "dilated": (2, 3, 0, 4),
    "steps": (3, 2, 1, 2),
}


@pytest.mark.parametrize(("kernel", "stride", "pad", "dilation"), WINDOWS.values(), ids=WINDOWS)
def test_windows_that_reach_beyond_the_whole_input(kernel, stride, pad, dilation):
    x = np.array([3.0, -1.0, 2.0])
    steps, reach = stride or kernel, (kernel - 1) * dilation + 1
    count = -(-(len(x) + 2 * pad - reach) // steps) + 1
    count -= (count - 1) * steps >= len(x) + pad
    windows = [[i * steps - pad + k * dilation for k in range(kernel)] for i in range(count)]
    inside = [[i for i in window if 0 <= i < len(x)] for window in windows]
    layer = nn.MaxPool1d(kernel, stride, pad, dilation, ceil_mode=True, return_indices=True)
    values, indices = layer(wg.tensor(x).view(1, 1, 3))
    assert values.flatten().tolist() == [x[w].max() for w in inside]
    assert indices.flatten().tolist() == [w[int(np.argmax(x[w]))] for w in inside]
    if dilation == 1:
        mean = nn.AvgPool1d(kernel, stride, pad, ceil_mode=True, count_include_pad=False)
        np.testing.assert_allclose(
            mean(wg.tensor(x).view(1, 1, 3)).flatten().numpy(), [x[w].mean() for w in inside]
        )


def test_windows_that_do_not_begin():
    with pytest.raises(wg.ShapeError, match="it must fit into them"):
        nn.MaxPool1d(5, 2, ceil_mode=True)(wg.ones(1, 1, 3))
    with pytest.raises(wg.ShapeError, match="it must fit into them"):
        nn.MaxPool1d(4)(wg.ones(1, 1, 3))


def ones(*shape: int) -> wg.Tensor:
    return wg.ones(*shape)


REFUSED = {
    "ranking": (lambda: F.margin_ranking_loss(ones(2), ones(2, 1), ones(2)), wg.ShapeError, "as many axes"),
    "triplet": (
        lambda: F.triplet_margin_loss(ones(2, 3), ones(2, 3), ones(3)),
        wg.ShapeError,
        "as many axes",
    ),
    "triplet with a distance": (
        lambda: F.triplet_margin_with_distance_loss(ones(2, 3), ones(2, 3), ones(3)),
        wg.ShapeError,
        "as many axes",
    ),
    "cosine targets": (
        lambda: F.cosine_embedding_loss(ones(2, 3), ones(2, 3), ones(2, 1)),
        wg.ShapeError,
        "with target of shape",
    ),
    "cosine inputs": (
        lambda: F.cosine_embedding_loss(ones(2, 2, 3), ones(2, 2, 3), ones(2)),
        wg.ShapeError,
        "with target of shape",
    ),
    "bilinear": (
        lambda: F.bilinear(ones(1, 2), ones(2, 3), ones(4, 2, 3)),
        wg.ShapeError,
        "must be the same",
    ),
    "no features": (lambda: nn.Bilinear(0, 3, 4), ValueError, "in1_features must be positive"),
    "no groups": (lambda: nn.GroupNorm(0, 4), ValueError, "do not divide into 0 groups"),
    "exponent": (lambda: nn.MultiMarginLoss(p=3), ValueError, "p must be 1 or 2"),
    "unpool": (
        lambda: F.max_unpool1d(ones(1, 1, 2), wg.tensor([[[0, -1]]]), 2),
        IndexError,
        "index -1 is out",
    ),
    "no size": (lambda: nn.FractionalMaxPool2d(2), ValueError, "either output_size or output_ratio"),
    "ratio": (lambda: nn.FractionalMaxPool2d(2, output_ratio=(0.5, 1.5)), ValueError, "between 0 and 1"),
    "shuffle": (lambda: F.pixel_shuffle(ones(1, 4, 2, 2), 0), ValueError, "upscale_factor must be positive"),
    "unshuffle": (
        lambda: F.pixel_unshuffle(ones(1, 4, 2, 2), 0),
        ValueError,
        "downscale_factor must be positive",
    ),
    "channels": (lambda: F.channel_shuffle(ones(1, 4, 2, 2), 0), ValueError, "groups must be positive"),
    "value": (lambda: F.pad(ones(1, 3), (1, 1), "reflect", 2.0), ValueError, "takes no value"),
}


@pytest.mark.parametrize(("call", "error", "text"), REFUSED.values(), ids=REFUSED)
def test_mistakes_that_would_give_numbers(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_shapes_that_are_taken():
    assert F.nll_loss(wg.tensor([1.0, 2.0]), wg.tensor([1])).item() == -2
    x = wg.tensor(numbers(2, 3))
    losses = np.logaddexp(0, numbers(2, 3)) - numbers(2, 3) * np.array([1.0, 0.0, 1.0])
    target = wg.tensor([1.0, 0.0, 1.0], dtype=wg.float64)
    np.testing.assert_allclose(F.multilabel_soft_margin_loss(x, target).item(), losses.mean())
    with pytest.warns(UserWarning, match="not used without affine=True"):
        out = nn.InstanceNorm1d(5)(wg.tensor(numbers(2, 3, 4)))
    np.testing.assert_allclose(out.mean(2).numpy(), np.zeros((2, 3)), atol=1e-12)
    with pytest.raises(wg.ShapeError, match="5 channels"):
        nn.InstanceNorm1d(5, affine=True)(wg.ones(2, 3, 4))


def test_rows_that_are_shortened_have_gradients_in_batches():
    w = np.array([[3.0, 4.0], [1.0, 0.0], [0.0, 2.0], [6.0, 8.0]])
    index = wg.tensor([1, 3])
    slope = wg.grad(lambda w: F.embedding(index, w, max_norm=1.0).square().sum())
    batch = np.stack([w, 0.5 * w])
    lengths = np.linalg.norm(batch, axis=-1, keepdims=True)
    want = 2 * batch * np.minimum(1.0, 1.0 / lengths) * np.array([0, 1, 0, 1])[:, None]
    np.testing.assert_allclose(wg.vmap(slope)(wg.tensor(batch)).numpy(), want, atol=1e-6)
    np.testing.assert_allclose(slope(wg.tensor(w)).numpy(), want[0], atol=1e-6)


@pytest.mark.parametrize("mode", ["bilinear", "nearest"])
@pytest.mark.parametrize(
    ("dtype", "size", "bound"), [("float16", 64, 0.05), ("float16", 300, 0.02), ("bfloat16", 20, 0.15)]
)
def test_images_have_more_pixels_than_halves_can_count(mode, dtype, size, bound):
    # Smooth along both axes, so that points moved by rounding give nearly the same.
    row = np.sin(np.linspace(0, 3, size))
    image = wg.tensor(np.outer(row, row)[None, None].astype("float32"))
    points = wg.tensor(np.random.default_rng(0).uniform(-1, 1, (1, 40, 1, 2)).astype("float32"))
    kind = getattr(wg, dtype)
    got = F.grid_sample(image.to(kind), points.to(kind), mode=mode, align_corners=True)
    x, y = points[0, :, 0, 0].numpy(), points[0, :, 0, 1].numpy()
    want = np.sin((x + 1) * 1.5) * np.sin((y + 1) * 1.5)
    assert got.dtype == kind
    np.testing.assert_allclose(got.float().numpy().ravel(), want, atol=bound)


def test_the_pixels_of_a_large_image_are_counted_exactly():
    # 2^24 + 1 is no float32.
    image = wg.zeros(1, 1, 4097, 4097)
    image[0, 0, -1, -1] = 1.0
    image[0, 0, -1, -2] = 2.0
    corner = wg.tensor([[[[1.0, 1.0], [1.0 - 2.0 / 4096, 1.0]]]])
    for mode in ("bilinear", "nearest", "bicubic"):
        got = F.grid_sample(image, corner, mode=mode, align_corners=True)
        assert got.flatten().tolist() == [1.0, 2.0]


def test_a_bias_of_a_higher_kind_is_not_cut_down():
    whole = wg.ones(1, 3, dtype=wg.int64)
    with pytest.raises(TypeError, match="linear: a bias of float32 for a result of int64"):
        F.linear(whole, whole, wg.tensor([0.7]))
    with pytest.raises(TypeError, match="linear: a bias of complex64 for a result of float32"):
        F.linear(wg.ones(1, 3), wg.ones(1, 3), wg.tensor([0.7j]))
    with pytest.raises(TypeError, match="conv1d: a bias of complex64 for a result of float32"):
        F.conv1d(wg.ones(1, 1, 3), wg.ones(1, 1, 2), wg.tensor([1j]))
    with pytest.raises(TypeError, match="conv1d: a bias of float32 for a result of int64"):
        F.conv1d(whole.unsqueeze(0), whole.unsqueeze(0), wg.tensor([1.5]))
    assert F.linear(wg.ones(1, 3), wg.ones(1, 3), wg.tensor([2])).tolist() == [[5.0]]


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int64", "bool"])
@pytest.mark.parametrize("training", [True, False])
def test_a_batch_norm_of_integers_is_float32(dtype: str, training: bool):
    x = wg.tensor([[0, 50, 3], [2, 10, 100], [4, 60, 8]]).to(getattr(wg, dtype))
    mean, var = (None, None) if training else (wg.tensor([1.0, 2.0, 3.0]), wg.tensor([4.0, 5.0, 6.0]))
    got = F.batch_norm(x, mean, var, training=training)
    assert got.dtype == wg.float32
    assert got.tolist() == F.batch_norm(x.float(), mean, var, training=training).tolist()


def test_norms_and_losses_refuse_complex_parameters():
    x, image, lost = wg.ones(2, 2), wg.ones(2, 2, 3), wg.tensor([1j, 2.0])
    for call, name in (
        (lambda: F.batch_norm(x * 1j, None, None, training=True), "batch_norm: input"),
        (lambda: F.batch_norm(x, None, None, lost, training=True), "batch_norm: weight"),
        (lambda: F.batch_norm(x, None, None, None, lost, True), "batch_norm: bias"),
        (lambda: F.batch_norm(x, lost, wg.ones(2)), "batch_norm: running_mean"),
        (lambda: F.layer_norm(x, (2,), None, lost), "layer_norm: bias"),
        (lambda: F.layer_norm(x, (2,), lost), "layer_norm: weight"),
        (lambda: F.rms_norm(x, (2,), lost), "rms_norm: weight"),
        (lambda: F.group_norm(image, 2, lost), "group_norm: weight"),
        (lambda: F.instance_norm(image, None, None, None, lost), "instance_norm: bias"),
        (lambda: F.cross_entropy(x, wg.tensor([0, 1]), lost), "cross_entropy: weight"),
        (lambda: F.nll_loss(x, wg.tensor([0, 1]), lost), "nll_loss: weight"),
    ):
        with pytest.raises(TypeError, match=name + " is .*complex64"):
            call()


def test_a_hard_choice_of_one_number():
    assert F.gumbel_softmax(wg.tensor(0.3), hard=True).tolist() == 1.0


def test_gradients_of_nothing_add_up():
    x = wg.zeros(2, 0, requires_grad=True)
    F.pdist(x).sum().backward()
    assert x.grad.shape == (2, 0)


def test_a_normalised_shape_that_is_none_is_named():
    for norm in (F.layer_norm, F.rms_norm):
        for shape in ([-1, 3], [], [2], [1, 2, 3]):
            with pytest.raises(wg.ShapeError, match=norm.__name__ + ": a tensor of shape"):
                norm(wg.ones(2, 3), shape)
