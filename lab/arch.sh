# What differs between the two kinds of host. lab/build, lab/run and lab/trapline read this file.
# It sets, by $arch (x86 or arm64), beside what packaging/arch.sh sets (Debian's and Rust's names of the architecture):
#   emulator the QEMU program that emulates the host, and the Debian package it is in
#   guests   the Debian package of the QEMU that runs guests in the host
#   machine  QEMU's options for a machine on which KVM works
#   console  the kernel's name of the serial console
# shellcheck shell=bash disable=SC2034,SC2154

# shellcheck source=packaging/arch.sh
. "$lab/../packaging/arch.sh"

lab_fail() {
    printf '%s: %s\n' "${0##*/}" "$*" >&2
    exit 125
}

lab_arch() { # x86|arm64
    static_arch "$1" || exit 125
    case $arch in
    x86)
        emulator=qemu-system-x86_64
        emulator_package=qemu-system-x86
        guests=qemu-system-x86
        # An AMD processor, as QEMU emulates SVM with nested paging, and no VMX.
        machine=(-machine q35 -cpu 'EPYC,+svm,+npt')
        console=ttyS0
        ;;
    arm64)
        emulator=qemu-system-aarch64
        emulator_package=qemu-system-arm
        guests=qemu-system-arm
        # EL2 and the virtualization host extensions (VHE), as on servers.
        machine=(-machine 'virt,virtualization=on,gic-version=3' -cpu neoverse-n1)
        console=ttyAMA0
        ;;
    esac
}

# Where hosts are kept: $LAB_DIR, or target/lab in the repository.
lab_dir() {
    printf '%s\n' "${LAB_DIR:-$(dirname "$lab")/target/lab}"
}
