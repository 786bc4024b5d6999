# Builds trapline in a Yocto project, for x86-64 and arm64. It needs Rust 1.95: oe-core has that since its
# rust_1.96.1.bb. The layer's configuration names the sources, of which there is no public place that could stand
# here, for example:
#
#     TRAPLINE_SRC_URI = "git:///srv/git/trapline;protocol=file;branch=main"
#     SRCREV:pn-trapline = "0123456789abcdef0123456789abcdef01234567"
#
# packaging/yocto/update names this file by the version and writes trapline-crates.inc and the licences' checksums.
SUMMARY = "Says where a virtual machine's time went"
DESCRIPTION = "trapline reads what perf and trace-cmd recorded on a KVM host, or records there itself, and says where \
each vCPU's time went, how long interrupts and wake-ups took stage by stage, what causes that, and what to change."
SECTION = "devel"
LICENSE = "Apache-2.0 | MIT"
LIC_FILES_CHKSUM = " \
    file://LICENSE-APACHE;md5=3b83ef96387f14655fc854ddc3c6bd57 \
    file://LICENSE-MIT;md5=5a84740fe1e76bf4775ec07f7fb98aa5 \
"

TRAPLINE_SRC_URI ??= ""
SRC_URI = "${TRAPLINE_SRC_URI}"
# S is oe-core's: the fetcher of git unpacks into ${UNPACKDIR}/${BP} since release 5.3.

inherit cargo cargo-update-recipe-crates bash-completion

require ${BPN}-crates.inc

python () {
    if not d.getVar("TRAPLINE_SRC_URI"):
        raise bb.parse.SkipRecipe("set TRAPLINE_SRC_URI and SRCREV:pn-trapline to where trapline's sources are")
}

COMPATIBLE_HOST = "(x86_64|aarch64).*-linux.*"

# The workspace has tools for tests too.
CARGO_BUILD_FLAGS:append = " --package trapline"
# do_package strips, and keeps what it stripped for the package of symbols.
export CARGO_PROFILE_RELEASE_STRIP = "none"

do_install:append() {
    install -d ${D}${mandir}/man1
    install -m 0644 ${S}/docs/man/*.1 ${D}${mandir}/man1/
    install -D -m 0644 ${S}/completions/trapline.bash ${D}${datadir}/bash-completion/completions/trapline
    install -D -m 0644 ${S}/completions/_trapline ${D}${datadir}/zsh/site-functions/_trapline
    install -D -m 0644 ${S}/completions/trapline.fish ${D}${datadir}/fish/vendor_completions.d/trapline.fish
}

FILES:${PN} += "${datadir}/zsh ${datadir}/fish"
