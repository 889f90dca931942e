#!/bin/sh
# Sets up everything the project needs on a fresh machine: finds Python 3.12 or newer, then makes
#   .tools          uv
#   .venv           the plugin's requirements and the development tools
#   .chroma-server  a Chroma server for demo and tests (it cannot share an environment with its client)
# Says what it does. Does nothing where nothing has changed since the last time.
set -eu
cd "$(dirname "$0")/.."

find_python() {
    for candidate in ${PYTHON:-} python3.12 python3.13 python3.14 python3 python \
        "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.12*/bin/python \
        "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.1[3-9]*/bin/python \
        /usr/local/bin/python3.1[2-9] /opt/*/bin/python3.1[2-9]; do
        if "$candidate" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 12))' 2>/dev/null; then
            # A shim may run for one folder only: take the interpreter behind it.
            "$candidate" -c 'import sys; print(sys.executable)'
            return 0
        fi
    done
    return 1
}

if ! python=$(find_python); then
    echo "Python 3.12 or newer is needed and was not found. Install it, or name it: PYTHON=/path/to/python3.12 make" >&2
    exit 1
fi

if [ ! -x .tools/bin/uv ]; then
    echo "Setting up: uv, with $python"
    "$python" -m venv .tools
    .tools/bin/python -m pip install --quiet --disable-pip-version-check 'uv>=0.9,<1'
fi

if ! cmp -s uv.lock .venv/locked 2>/dev/null; then
    echo "Setting up: the plugin's requirements and the development tools, into .venv (about 200 MB)"
    UV_PYTHON_DOWNLOADS=never .tools/bin/uv sync --quiet --frozen --python "$python"
    cp uv.lock .venv/locked
fi

if ! cmp -s development/chroma-server.txt .chroma-server/locked 2>/dev/null; then
    echo "Setting up: a Chroma server for demo and tests, into .chroma-server (about 400 MB)"
    UV_PYTHON_DOWNLOADS=never .tools/bin/uv venv --quiet --clear --python "$python" .chroma-server
    .tools/bin/uv pip install --quiet --python .chroma-server -r development/chroma-server.txt
    cp development/chroma-server.txt .chroma-server/locked
fi
