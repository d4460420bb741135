# SPDX-License-Identifier: MIT
# common.sh: what every script here needs: where things are, quiet commands, package installs.
# Sourced, never run. Messages go to stderr, so that a script's stdout stays usable by others.
# shellcheck shell=bash

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
cache=${IDEMD_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/idemd}
world=$cache/world-sid
# Used by the scripts that source this file.
# shellcheck disable=SC2034
world_build=/srv/idemd/build
# The keyring that Debian's own archive is signed with.
archive_keyring=/usr/share/keyrings/debian-archive-keyring.gpg

say() { printf '%s: %s\n' "$(basename "$0")" "$*" >&2; }
die() { say "$*"; exit 1; }

# quiet WHAT COMMAND...: runs the command in silence; on failure shows the end of what it wrote.
quiet() {
    local what=$1 log status=0
    shift
    log=$(mktemp)
    "$@" </dev/null >"$log" 2>&1 || status=$?
    if [ "$status" -ne 0 ]; then
        say "$what failed (status $status), the end of its output:"
        tail -n 40 "$log" >&2
    fi
    rm -f "$log"
    return "$status"
}

# twice WHAT COMMAND...: as quiet, tried a second time, for what depends on a network.
twice() {
    quiet "$@" || { say "trying again: $1"; sleep 2; quiet "$@"; }
}

apt_mirror() {
    apt-cache policy base-files | grep -oE '(https?|file)://?[^ ]+' | grep -v security | head -n 1 || true
}

# The Debian mirror that this machine itself installs from. A bare machine has no lists yet, and
# apt then names none.
debian_mirror() {
    local found
    found=$(apt_mirror)
    [ -n "$found" ] || { apt-get -q update >&2; found=$(apt_mirror); }
    [ -n "$found" ] || { say "apt knows no mirror of Debian"; return 1; }
    printf '%s\n' "$found"
}

# missing_packages NAME...: those that are not installed, one a line.
missing_packages() {
    local have
    have=$(dpkg-query -W -f '${Package} ${db:Status-Status}\n' "$@" 2>/dev/null |
        awk '$2 == "installed" {print $1}') || true
    comm -23 <(printf '%s\n' "$@" | sort -u) <(printf '%s\n' "$have" | sort -u)
}
