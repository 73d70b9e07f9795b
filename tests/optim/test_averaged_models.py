"""Averages of weights: pickles of them, and which statistics are taken anew."""

import io
import pickle

import numpy as np
import pytest
import wengert as wg
from wengert import nn
from wengert.optim import swa_utils


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"avg_fn": swa_utils.get_ema_avg_fn(0.5)},
        {"multi_avg_fn": swa_utils.get_swa_multi_avg_fn()},
        {"multi_avg_fn": swa_utils.get_ema_multi_avg_fn(0.5)},
    ],
    ids=["default", "ema", "mean of lists", "ema of lists"],
)
def test_averages_are_pickled(settings):
    model = nn.Linear(1, 1, bias=False).double()
    average = swa_utils.AveragedModel(model, **settings)
    again = pickle.loads(pickle.dumps(average))
    buffer = io.BytesIO()
    wg.save(average, buffer)
    for value in (1.0, 3.0):
        nn.init.constant_(model.weight, value)
        again.update_parameters(model)
    assert again.module.weight.item() == 2.0
    assert again.n_averaged.item() == 2


def test_statistics_of_instances_are_left_alone():
    """Batch normalisations are averaged anew; what an instance normalisation knows moves as in training."""
    model = nn.Sequential(nn.InstanceNorm1d(2, track_running_stats=True), nn.BatchNorm1d(2)).double()
    model[0].running_mean.fill_(5.0)
    model[1].running_mean.fill_(5.0)
    images = np.arange(8.0).reshape(1, 2, 4)
    swa_utils.update_bn([wg.tensor(images)], model)
    means = images.mean(-1)[0]
    np.testing.assert_allclose(model[0].running_mean.numpy(), 0.9 * 5.0 + 0.1 * means)
    np.testing.assert_allclose(model[1].running_mean.numpy(), 0.0, atol=1e-12)
    assert model[1].momentum == 0.1
