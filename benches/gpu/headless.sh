#!/bin/bash
# Measures wengert on an NVIDIA machine without a display, such as a container in a data centre.
#
#   benches/gpu/headless.sh pack FOLDER   where there is a network: gathers what such a machine may lack
#   benches/gpu/headless.sh setup         finds the driver's Vulkan, and the libraries that it needs
#   benches/gpu/headless.sh probe         what the GPU is and can do, and a profile of a small program
#   benches/gpu/headless.sh suite [ARGS]  the GPU tests (ARGS go to pytest: name files, to run a part)
#   benches/gpu/headless.sh table [ARGS]  the table of kernels (ARGS go to benches.gpu)
#
# Each phase ends within nine minutes, by itself or stopped. Only `pack`
# needs a network. `setup` writes what it found to $HEADLESS/env, which the other phases read; without
# it they take the GPU that there is.
#
#   PYTHON      the interpreter (python3); it needs NumPy, pytest for `suite`, and wengert or a wheel of it
#   HEADLESS    where `setup` keeps its files (/tmp/wengert-headless)
#   PACK        the folder that `pack` made, carried here ($HEADLESS/pack)
#
# What is known to go wrong: a container without `graphics` in NVIDIA_DRIVER_CAPABILITIES lacks libGLX_nvidia,
# libnvidia-glvkspirv and libnvidia-gpucomp; libGLX_nvidia needs libX11 and libXext, which servers lack, and
# libEGL_nvidia does not; a libc older than the driver's fails with VK_ERROR_INITIALIZATION_FAILED while
# nvidia-smi works; the manifest of the driver may be missing.
set -u

if [ -z "${HEADLESS_TIMED-}" ]; then
    HEADLESS_TIMED=1 exec timeout --signal=INT --kill-after=10 525 bash "$0" "$@"
fi

here=$PWD
cd "$(dirname "$0")/../.." || exit 2
HEADLESS=${HEADLESS:-/tmp/wengert-headless}
PACK=${PACK:-$HEADLESS/pack}
PYTHON=${PYTHON:-python3}
LOADER="libvulkan1 libegl1 libglvnd0 libopengl0 libgl1 libglx0 libgles2 libx11-6 libxext6 libxcb1 libxau6
  libxdmcp6 libbsd0 libmd0"

say() { printf '\n== %s\n' "$*"; }

# Runs a command for at most so many seconds; an interrupt lets it print what it has.
limited() {
    local seconds=$1
    shift
    timeout --signal=INT --kill-after=10 "$seconds" "$@"
    local status=$?
    case $status in
    0 | 1) ;;
    124 | 137) echo "stopped after $seconds s: $1" ;;
    126 | 127) echo "cannot run $1" ;;
    *) [ "$status" -lt 128 ] || echo "$1 was ended by signal $((status - 128))" ;;
    esac
    return "$status"
}

pack() {
    local folder=${1-}
    if [ -z "$folder" ]; then
        echo "usage: benches/gpu/headless.sh pack FOLDER"
        return 2
    fi
    case $folder in /*) ;; *) folder=$here/$folder ;; esac
    mkdir -p "$folder" || return 1
    folder=$(cd "$folder" && pwd)
    say "loader packages of this machine's distribution, into $folder"
    for name in $LOADER; do
        (cd "$folder" && limited 60 apt-get download "$name") || echo "no package $name here"
    done
    say "wheels"
    local wheel
    for wheel in dist/wengert-*.whl; do
        if [ -e "$wheel" ]; then
            cp "$wheel" "$folder/"
        else
            echo "no wheel of wengert in dist/; make one with: make wheel"
        fi
    done
    limited 200 "$PYTHON" -m pip download --quiet --only-binary=:all: --dest "$folder" numpy pytest hypothesis
    ls -l "$folder"
}

# Prints the library's path, where the loader or a usual folder has it.
library() {
    local found
    found=$(ldconfig -p 2>/dev/null | awk -v name="$1" 'index($1, name) == 1 {print $NF; exit}')
    if [ -z "$found" ]; then
        local folders=(/usr/lib /usr/lib64 /usr/local/nvidia /usr/local/lib "$HEADLESS/root")
        found=$(find "${folders[@]}" -name "$1*" 2>/dev/null | head -1)
    fi
    echo "$found"
}

look() {
    say "card and driver"
    if command -v nvidia-smi >/dev/null; then
        local facts=name,driver_version,memory.total,clocks.sm,clocks.max.sm,clocks.mem,power.limit
        limited 30 nvidia-smi --query-gpu=$facts --format=csv
    else
        echo "no nvidia-smi"
    fi
    ls -l /dev/nvidia* /dev/dri 2>&1
    echo "NVIDIA_DRIVER_CAPABILITIES=${NVIDIA_DRIVER_CAPABILITIES-(not set)}"
    ldd --version 2>/dev/null | head -1
    say "libraries"
    local name
    for name in libvulkan.so libGLX_nvidia.so libEGL_nvidia.so libnvidia-glvkspirv.so libnvidia-gpucomp.so \
        libX11.so libXext.so libEGL.so; do
        printf '%-24s %s\n' "$name" "$(library "$name")"
    done
}

# Unpacks the loader packages beside the system, where it lacks some.
unpack() {
    local name missing=()
    for name in libvulkan.so libEGL.so libX11.so libXext.so; do
        ldconfig -p | grep -q "^[[:space:]]*$name" || missing+=("$name")
    done
    if [ "${#missing[@]}" = 0 ]; then
        echo "the system has what the driver needs"
        return
    fi
    local debs=("$PACK"/*.deb) deb
    if [ ! -e "${debs[0]}" ]; then
        echo "${missing[*]} missing, and no packages in $PACK; make them elsewhere with: benches/gpu/headless.sh pack FOLDER"
        return
    fi
    for deb in "${debs[@]}"; do dpkg -x "$deb" "$HEADLESS/root" && echo "unpacked $(basename "$deb")"; done
    local folder
    for folder in "$HEADLESS"/root/usr/lib/*-linux-gnu "$HEADLESS"/root/lib/*-linux-gnu; do
        if [ -d "$folder" ]; then LD_LIBRARY_PATH=${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$folder; fi
    done
    export LD_LIBRARY_PATH
    echo "LD_LIBRARY_PATH=$LD_LIBRARY_PATH"
}

# Installs wengert from a wheel where the interpreter has none.
install() {
    if "$PYTHON" -c 'import wengert' 2>/dev/null; then
        return
    fi
    local wheels=("$PACK"/wengert-*.whl dist/wengert-*.whl) wheel
    for wheel in "${wheels[@]}"; do
        if [ -e "$wheel" ]; then
            limited 60 "$PYTHON" -m venv --system-site-packages "$HEADLESS/venv" || return 1
            PYTHON=$HEADLESS/venv/bin/python
            limited 90 "$PYTHON" -m pip install --quiet --no-index --find-links "$PACK" "$wheel" || return 1
            limited 60 "$PYTHON" -m pip install --quiet --no-index --find-links "$PACK" pytest hypothesis ||
                echo "no pytest: the phase suite will not run"
            return
        fi
    done
    echo "$PYTHON has no wengert, and there is no wheel in $PACK or dist; make one with: make wheel"
    return 1
}

# Whether the GPU behind the manifest $1 (the loader's choice without) is a card; prints what answers.
answers() {
    env ${1+"VK_DRIVER_FILES=$1" "VK_ICD_FILENAMES=$1"} timeout --kill-after=5 30 "$PYTHON" -c '
import sys
import wengert as wg
info = wg.gpu.info()
print("   ", info["device_type"], "|", info["adapter"], "|", info["driver"])
sys.exit(info["device_type"] == "software")' 2>&1 | tail -3
    return "${PIPESTATUS[0]}"
}

# Writes the environment of the other phases.
remember() {
    local name
    for name in PYTHON LD_LIBRARY_PATH VK_DRIVER_FILES VK_ICD_FILENAMES; do
        if [ -n "${!name-}" ]; then printf 'export %s=%q\n' "$name" "${!name}"; fi
    done >"$HEADLESS/env"
}

setup() {
    mkdir -p "$HEADLESS" || return 1
    look
    say "loader"
    unpack
    say "wengert"
    install || return 1
    "$PYTHON" -c 'import sys, wengert; print(sys.executable, wengert.__version__, wengert.__file__)'
    say "manifests"
    local manifests=() name path
    while IFS= read -r path; do manifests+=("$path"); done < <(
        find /usr/share/vulkan /etc/vulkan /usr/local/share/vulkan -name 'nvidia*icd*.json' 2>/dev/null)
    # EGL first: it needs no X11.
    for name in libEGL_nvidia.so.0 libGLX_nvidia.so.0; do
        path=$(library "$name")
        if [ -n "$path" ]; then
            local made='{"library_path": "'$path'", "api_version": "1.4.312"}'
            echo '{"file_format_version": "1.0.1", "ICD": '"$made"'}' >"$HEADLESS/${name%.so.0}.json"
            manifests+=("$HEADLESS/${name%.so.0}.json")
        fi
    done
    for path in "${manifests[@]}"; do
        echo "trying $path"
        if answers "$path"; then
            export VK_DRIVER_FILES=$path VK_ICD_FILENAMES=$path
            remember
            say "found; written to $HEADLESS/env:"
            cat "$HEADLESS/env"
            return 0
        fi
    done
    say "no card answers through ${#manifests[@]} manifests; what the loader finds by itself:"
    if answers; then
        remember
        return 0
    fi
    echo "Only a software adapter, or none. See the head of this file; VK_LOADER_DEBUG=all tells more."
    return 1
}

probe() {
    say "what the GPU is"
    limited 120 "$PYTHON" -c '
import wengert as wg
for name, value in wg.gpu.info().items():
    if isinstance(value, dict):
        for limit, number in value.items():
            print(f"{limit:40} {number}")
    else:
        print(f"{name:24} {value}")' || return 1
    say "ceilings, and a profile of a layer and its gradients"
    limited 240 "$PYTHON" -c '
import wengert as wg
import wengert.nn.functional as F
top = wg.gpu.ceilings()
copy, multiply = top["copy"] / 1e9, top["multiply"] / 1e12
print(f"copy {copy:.4g} GB/s, multiply-adds {multiply:.4g} TFLOP/s")
side = 128 if wg.gpu.info()["device_type"] == "software" else 4096
x, w = (wg.randn(side, side).to("gpu").requires_grad_() for _ in range(2))
for _ in range(2):
    with wg.gpu.profile(ceilings=top) as found:
        F.layer_norm((x @ w).softmax(-1), (side,)).square().sum().backward()
print(found)'
}

suite() {
    say "GPU tests, at most eight minutes; name files to run them in several parts"
    limited 480 "$PYTHON" -m pytest -q -m gpu -p no:cacheprovider "${@:-tests}"
}

table() {
    say "kernels, at most eight minutes"
    local peer=()
    if limited 60 "$PYTHON" -c 'import sys, torch; sys.exit(not torch.cuda.is_available())' 2>/dev/null; then
        peer=(--peer torch)
    fi
    mkdir -p "$HEADLESS"
    limited 450 "$PYTHON" -m benches.gpu "${peer[@]}" --output "$HEADLESS/gpu.md" "$@" &&
        echo "written to $HEADLESS/gpu.md"
}

# Takes over what `setup` found.
found() {
    if [ -e "$HEADLESS/env" ]; then
        # shellcheck disable=SC1091
        . "$HEADLESS/env"
    else
        echo "no $HEADLESS/env: taking the GPU that there is"
    fi
}

phase=${1-}
shift
case $phase in
pack) pack "$@" ;;
setup) setup ;;
probe) found && probe ;;
suite) found && suite "$@" ;;
table) found && table "$@" ;;
*)
    sed -n '2,/^set/p' benches/gpu/headless.sh | sed '$d; s/^# \{0,1\}//'
    exit 2
    ;;
esac
status=$?
say "$phase ended with status $status after $SECONDS s"
exit "$status"
