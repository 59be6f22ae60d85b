#!/usr/bin/env bash
# Makes a virtual environment of a clone, and installs springback in it. Usage: set_up_venv.sh PYTHON VENV EXTRAS
#   PYTHON   the Python to make it with; empty where none was found
#   VENV     the environment's folder; one that is there already is kept
#   EXTRAS   what to install besides the base, such as demo or all,dev
# Installs with uv where that is on the path and works, which is several times as fast, and else with pip.
set -euo pipefail
python=$1 venv=$2 extras=$3
packages=(--editable ".[$extras]")

case $extras in
demo) about="about 30 s with pip, 10 s with uv" ;;
*) about="a minute or two" ;;
esac

if [ -z "$python" ]; then
    echo "springback needs Python 3.11 or newer; the python3 here is $(python3 --version 2>&1)." \
        'Install a newer one, or name it: make PYTHON=/path/to/python3.12' >&2
    exit 1
fi

echo "Setting up $venv with the extras $extras: $about the first time, and longer while packages are downloaded ..."
if [ ! -x "$venv/bin/python" ]; then
    "$python" -m venv "$venv" || {
        echo "Could not make $venv. On Debian and Ubuntu: apt-get install python3-venv" >&2
        exit 1
    }
fi

# Where pip has an index of its own, uv does not know of it, and would ask another for minutes.
with_uv() {
    command -v uv >/dev/null || return 1
    if [ -z "${UV_DEFAULT_INDEX:-}${UV_INDEX_URL:-}" ] && "$venv/bin/python" -m pip config list | grep -q 'index-url'; then
        return 1
    fi
    uv pip install --quiet --python "$venv/bin/python" "${packages[@]}" && return
    echo 'uv could not install it; going on with pip ...' >&2
    return 1
}

# What is imported is compiled then; to compile all that is installed would take as long as the rest.
with_uv || "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-compile "${packages[@]}"
echo "$venv is set up, in $SECONDS s."
