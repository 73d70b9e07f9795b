"""The two hosts of the shaders: what one finds right says something about the other only on the same
adapter."""

import wengert as wg
from shaders.host import device


def test_both_hosts_use_the_same_adapter():
    assert device().adapter.info["device"] == wg.gpu.info(0)["adapter"]
