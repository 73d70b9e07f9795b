"""Print the GPU adapters that tests could run on; exit 1 if there is none. Asks wgpu-py, not our own host."""

import sys

import wgpu


def main() -> int:
    """List every adapter, one a line."""
    adapters = wgpu.gpu.enumerate_adapters_sync()
    for adapter in adapters:
        info = adapter.info
        print(f"adapter: {info['device']} ({info['backend_type']}, {info['adapter_type']})")
    return 0 if adapters else 1


if __name__ == "__main__":
    sys.exit(main())
