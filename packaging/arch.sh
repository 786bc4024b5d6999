# How static programs are built for the two architectures. Files of packaging/ and lab/ read it.
# static_arch sets, by $arch (x86 or arm64):
#   debian   Debian's name of the architecture, as Go and images of containers name it
#   machine_name  the kernel's and RPM's name
#   target   Rust's name of the target for static programs
# shellcheck shell=bash disable=SC2034

static_arch() { # x86|arm64
    arch=$1
    case $arch in
    x86)
        debian=amd64
        machine_name=x86_64
        ;;
    arm64)
        debian=arm64
        machine_name=aarch64
        ;;
    *)
        printf "%s: found '%s' where the architecture belongs. Give x86 or arm64.\n" "${0##*/}" "$arch" >&2
        return 1
        ;;
    esac
    target=$machine_name-unknown-linux-musl
}

# Static programs need Rust's target with musl.
static_rust() {
    [ -d "$(rustc --print sysroot)/lib/rustlib/$target" ] && return 0
    printf '%s: Rust cannot build for %s yet. Add it: rustup target add %s\n' "${0##*/}" "$target" "$target" >&2
    return 1
}

# Builds for $target. Rust's own linker, rust-lld, is in every toolchain: neither a C compiler nor libraries of that
# architecture are needed.
static_cargo() { # CARGO-OPTIONS...
    local linker
    linker=CARGO_TARGET_$(tr a-z- A-Z_ <<<"$target")_LINKER
    env "$linker=rust-lld" cargo build --locked --target "$target" "$@"
}
