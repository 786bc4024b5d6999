# What the files of packaging/ share: where packages are put, and what they are called. Read it in the repository's
# folder, after static_arch. It sets:
#   version  the workspace's
#   dist     the folder of all packages: $TRAPLINE_DIST, or target/dist
#   folder   what is packed, unpacked: packaging/pack fills it
# and exports SOURCE_DATE_EPOCH, the time of all that is packed: the commit's, or as given.
# shellcheck shell=bash disable=SC2034,SC2154

fail() {
    printf '%s: %s\n' "${0##*/}" "$*" >&2
    exit 1
}

version=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"$/\1/p' Cargo.toml)
[ -n "$version" ] || fail "Cargo.toml has no version in [workspace.package]"
dist=${TRAPLINE_DIST:-target/dist}
folder=$dist/trapline-$version-$arch
: "${SOURCE_DATE_EPOCH:=$(git log -1 --format=%ct 2>/dev/null || true)}"
[ -n "$SOURCE_DATE_EPOCH" ] || fail "these sources are no git repository: give SOURCE_DATE_EPOCH, the release's time"
export SOURCE_DATE_EPOCH LC_ALL=C

# Whether packaging/pack was here before.
packed() {
    [ -x "$folder/trapline" ] || fail "$folder has no program yet: run 'packaging/build $arch'"
}

# An archive without anything of the machine that made it, on standard output: sorted names, owner 0, one time.
# Modes are those of the files.
archive() { # TAR-OPTIONS AND NAMES...
    tar --create --format=gnu --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner "$@"
}
