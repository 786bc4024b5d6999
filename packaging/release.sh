# What the files of packaging/ share: where packages are put, and what they are called. Read it in the repository's
# folder, after static_arch. It sets:
#   version  the workspace's
#   dist     the folder of all packages: $TRAPLINE_DIST, or target/dist
#   folder   what is packed, unpacked: packaging/pack fills it
#   package_version, maintainer  of Debian's packages: the packaging of a version may change without it
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

package_version=$version-1
maintainer=${DEBFULLNAME:-"trapline's developers"}${DEBEMAIL:+" <$DEBEMAIL>"}

# Whether packaging/pack was here before.
packed() {
    [ -x "$folder/trapline" ] || fail "$folder has no program yet: run 'packaging/build $arch'"
}

# An archive without anything of the machine that made it, on standard output: sorted names, owner 0, one time.
# Modes are those of the files.
archive() { # TAR-OPTIONS AND NAMES...
    tar --create --format=gnu --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner "$@"
}

# Debian's changelog of a package, packed.
debian_changes() { # PACKAGE
    gzip -9n <<CHANGES
$1 ($package_version) unstable; urgency=medium

  * Version $version: changelog.gz says what is new.

 -- $maintainer  $(date -u -R -d "@$SOURCE_DATE_EPOCH")
CHANGES
}

debian_copyright() { # PROGRAM HOW-IT-IS-LINKED
    cat <<COPYRIGHT
Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: trapline
Comment: /usr/bin/$1 is $2. LICENSES-THIRD-PARTY beside this file
 has the licences of the crates and libraries in it.

Files: *
COPYRIGHT
    printf 'Copyright: %s\n' "$(sed -n 's/^Copyright (c) //p' LICENSE-MIT)"
    printf 'License: Apache-2.0 or Expat\n\nLicense: Apache-2.0\n'
    printf ' /usr/share/common-licenses/Apache-2.0 has the text on Debian systems.\n\nLicense: Expat\n'
    sed -e '1,/^Copyright/d' LICENSE-MIT | sed -e '1{/^$/d}' -e 's/^$/./' -e 's/^/ /'
}

# The folder of what dpkg reads, with the sums of all files.
debian_sums() { # ROOT
    find "$1" -type d -exec chmod 755 {} +
    mkdir "$1/DEBIAN"
    (cd "$1" && find usr -type f -print0 | sort -z | xargs -0 md5sum) >"$1/DEBIAN/md5sums"
}

debian_size() { # ROOT
    find "$1/usr" -type f -printf '%s\n' | awk '{ all += int(($1 + 1023) / 1024) } END { print all }'
}

debian_package() { # ROOT DEB
    find "$1" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
    dpkg-deb --root-owner-group -Zxz --build "$1" "$2" >/dev/null
    printf '%s  %s bytes\n' "$2" "$(stat -c %s "$2")"
}
