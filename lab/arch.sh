# What differs between the two kinds of host. lab/build, lab/run and lab/trapline read this file.
# It sets, by $arch (x86 or arm64):
#   debian   Debian's name of the architecture
#   target   Rust's name of the target for static programs
#   emulator the QEMU program that emulates the host, and the Debian package it is in
#   guests   the Debian package of the QEMU that runs guests in the host
#   machine  QEMU's options for a machine on which KVM works
#   console  the kernel's name of the serial console
# shellcheck shell=bash disable=SC2034

lab_fail() {
    printf '%s: %s\n' "${0##*/}" "$*" >&2
    exit 125
}

lab_arch() { # x86|arm64
    arch=$1
    case $arch in
    x86)
        debian=amd64
        target=x86_64-unknown-linux-musl
        emulator=qemu-system-x86_64
        emulator_package=qemu-system-x86
        guests=qemu-system-x86
        # An AMD processor, as QEMU emulates SVM with nested paging, and no VMX.
        machine=(-machine q35 -cpu 'EPYC,+svm,+npt')
        console=ttyS0
        ;;
    arm64)
        debian=arm64
        target=aarch64-unknown-linux-musl
        emulator=qemu-system-aarch64
        emulator_package=qemu-system-arm
        guests=qemu-system-arm
        # EL2 and the virtualization host extensions (VHE), as on servers.
        machine=(-machine 'virt,virtualization=on,gic-version=3' -cpu neoverse-n1)
        console=ttyAMA0
        ;;
    *) lab_fail "found '$arch' where the architecture belongs. Give x86 or arm64." ;;
    esac
}

# Where hosts are kept: $LAB_DIR, or target/lab in the repository.
lab_dir() {
    printf '%s\n' "${LAB_DIR:-$(dirname "$lab")/target/lab}"
}

# Static programs need Rust's target with musl.
lab_rust() {
    [ -d "$(rustc --print sysroot)/lib/rustlib/$target" ] ||
        lab_fail "Rust cannot build for $target yet. Add it: rustup target add $target"
}
