#!/usr/bin/env bash
# Installs what is missing on Debian (or Ubuntu) and builds with the presets of CMakePresets.json.
#
#   tools/setup.sh         the program alone                     build/release/planner
#   tools/setup.sh tests   also the tests, and all of it again
#                          under clang 14 with sanitizers        build/release, build/sanitize
#
# Packages are installed by apt-get, through sudo unless root, and only where one is missing.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

what=${1:-program}
packages=(g++ cmake ninja-build libexpected-dev libfmt-dev librange-v3-dev libeigen3-dev
          nlohmann-json3-dev libcsv-dev libcli11-dev)
case $what in
program) ;;
tests) packages+=(catch2 clang-14 libclang-rt-14-dev libfuzzer-14-dev pkg-config dpkg-dev) ;;
*)
    echo "usage: tools/setup.sh [tests]" >&2
    exit 2
    ;;
esac

missing=()
if command -v dpkg-query >/dev/null && command -v apt-get >/dev/null; then
    for p in "${packages[@]}"; do
        [[ $(dpkg-query -W -f '${db:Status-Status}' "$p" 2>/dev/null || true) == installed ]] || missing+=("$p")
    done
else
    echo "setup: no apt-get here; these must be there already: ${packages[*]}" >&2
fi
if ((${#missing[@]})); then
    sudo=()
    ((EUID == 0)) || sudo=(sudo)
    echo "setup: installing ${missing[*]}"
    "${sudo[@]}" apt-get -q update </dev/null
    "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=300 install -y --no-install-recommends \
        "${missing[@]}" </dev/null
fi

if [[ $what == program ]]; then
    cmake --preset release -DSERVECAP_TESTS=OFF -DSERVECAP_EXAMPLES=OFF
    cmake --build --preset release
else
    cmake --preset release -DSERVECAP_TESTS=ON -DSERVECAP_EXAMPLES=ON
    cmake --build --preset release
    cmake --preset sanitize
    cmake --build --preset sanitize
fi
