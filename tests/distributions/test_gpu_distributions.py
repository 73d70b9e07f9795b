"""Densities and samples on a GPU, in float32, beside those of the CPU."""

import numpy as np
import pytest
import wengert as wg
import wengert.distributions as D
from distributions.families import FAMILIES, OTHERS

ALL = FAMILIES | OTHERS


@pytest.mark.parametrize(
    "name", ["Normal", "Gamma", "Beta", "StudentT", "Binomial", "NegativeBinomial", "VonMises"]
)
def test_as_on_the_cpu(name: str) -> None:
    values = [p.astype(np.float32) for p in ALL[name].parameters(8, 3, False)]
    here, there = (ALL[name].make(*[wg.tensor(p).to(device) for p in values]) for device in ("cpu", "gpu"))
    x = here.sample((2,))
    got = there.log_prob(x.to("gpu"))
    assert got.is_gpu
    np.testing.assert_allclose(got.cpu().numpy(), here.log_prob(x).numpy(), rtol=1e-4, atol=1e-4)
    draws = there.sample((4000,)).cpu().numpy()
    if name != "VonMises":
        error = (draws.mean(0) - here.mean.numpy()) / (here.stddev.numpy() / 4000**0.5)
        assert np.abs(error[np.isfinite(error)]).max() < 5


def test_gradients_and_vectors() -> None:
    a = wg.tensor([0.5, 2.0]).to("gpu").requires_grad_()
    D.Gamma(a, 1.0).rsample((5,)).sum().backward()
    assert a.grad is not None
    assert a.grad.isfinite().all().item()
    logits = wg.tensor([[0.0, 1.0], [2.0, 0.0]]).to("gpu")
    d = D.Categorical(logits=logits)
    x = d.sample((3,))
    assert x.shape == d.log_prob(x).shape == (3, 2)
    assert D.Dirichlet(a).rsample().sum().item() == pytest.approx(1, abs=1e-5)
