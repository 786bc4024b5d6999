# Guests for the jobs of the laboratory. A job begins with: . /lab/lib.sh
#
#   guest_start NAME [OPTIONS] [-- QEMU-OPTIONS]   starts a guest under KVM and returns at once
#       --vcpus N             vCPUs (default 2)
#       --memory M            memory, as QEMU takes it (default 256M)
#       --pin LIST            vCPU 0 runs on the first CPU of the list, vCPU 1 on the second: --pin 1,2
#       --net tap             a network card in the bridge br0: the first guest is 10.0.0.11, the second 10.0.0.12; the
#                             host is 10.0.0.1
#       --net poll            a network card at a port of switch_start's, which is the way to the other guest there; addresses as with tap
#       --vhost on|off        whether the kernel (vhost_net) or QEMU moves its packets (default on)
#       --transport pci|mmio  how its network card is attached (default pci; mmio is arm64's only)
#       --console serial|virtio   what the guest's console is (default serial)
#       --put FILE            puts FILE into the guest's /bin
#       --cmd TEXT            a shell command that runs in the guest from its start and prints to its console
#       --append WORDS        words for the guest kernel's command line
#   guest_wait NAME [SECONDS]      waits until the guest is up (default 180)
#   guest_run NAME COMMAND         runs a shell command in the guest, prints what it printed, returns its status;
#                                  GUEST_LIMIT is how many seconds it may take (default 300)
#   guest_pause NAME, guest_resume NAME   stops QEMU's threads, and lets them go on: between the two a guest makes no event
#   guest_stop NAME                ends the guest
#   tracepoints_on EVENT...        before guests start: what will be recorded, as SYSTEM or SYSTEM/EVENT (see below)
#   switch_start                   starts DPDK's testpmd with two ports, which forwards from each to the other one and polls, on CPU 1
#   switch_stop                    ends it
#   guest_pins                     prints where the vCPUs of two guests go: on a host of six CPUs each has its own
#   guest_pid NAME                 prints QEMU's process id
#   guest_tid NAME VCPU            prints the thread id of a vCPU
#
# In /run/guests/NAME lie: pid, console (what the guest printed there), qemu (what QEMU printed), command (QEMU's command
# line), address, qmp (a socket of QEMU's machine protocol).
# shellcheck shell=bash
set -eu

guests=/run/guests

lab_bridge() {
    [ ! -e /sys/class/net/br0 ] || return 0
    modprobe -a bridge tun vhost_net
    sysctl -q -w net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.default.disable_ipv6=1
    ip link add br0 type bridge
    ip addr add 10.0.0.1/24 dev br0
    ip link set br0 up
}

# Turning a tracepoint on or off patches the kernel's code, and under emulation vCPUs that run meanwhile may hang in that for
# ever. So what a job will record is on before its guests start, twice and in buffers that are off: from two users of a tracepoint
# on nothing is patched for one more (tracepoint_add_func, kernel/tracepoint.c).
tracepoints_on() { # SYSTEM | SYSTEM/EVENT...
    local once event
    for once in /sys/kernel/tracing/instances/on1 /sys/kernel/tracing/instances/on2; do
        mkdir -p "$once"
        echo 0 >"$once/tracing_on"
        for event; do
            [ ! -e "$once/events/$event/enable" ] || echo 1 >"$once/events/$event/enable"
        done
    done
}

# testpmd ends with its standard input.
switch_start() {
    local port ports=()
    for port in 0 1; do ports+=(--vdev "net_vhost$port,iface=/run/port$port"); done
    tail -f /dev/null | dpdk-testpmd --no-huge --no-pci -m 256 -l 0,1 -d librte_net_vhost.so.23 -d librte_mempool_ring.so.23 "${ports[@]}" \
        -- --nb-cores=1 --forward-mode=io --auto-start --no-lsc-interrupt --total-num-mbufs=4096 >/run/switch 2>&1 &
    switch_pid=$!
    for ((port = 0; port < 120; port++)); do
        [ ! -S /run/port1 ] || return 0
        sleep 0.5
    done
    echo 'switch_start: no ports in a minute:' >&2
    tail /run/switch >&2
    return 1
}

# It takes a CPU as long as it is there.
switch_stop() {
    kill "$switch_pid"
    wait "$switch_pid" || true
    rm -f /run/port0 /run/port1
}

guest_start() {
    local name=$1 vcpus=2 memory=256M pin='' net='' vhost=on transport=pci console=serial put=() text='' append=''
    shift
    while [ $# -gt 0 ] && [ "$1" != -- ]; do
        case $1 in
        --vcpus) vcpus=$2 ;;
        --memory) memory=$2 ;;
        --pin) pin=$2 ;;
        --net) net=$2 ;;
        --vhost) vhost=$2 ;;
        --transport) transport=$2 ;;
        --console) console=$2 ;;
        --put) put+=("$2") ;;
        --cmd) text=$2 ;;
        --append) append=$2 ;;
        *) echo "guest_start: there is no option $1" >&2 && return 2 ;;
        esac
        shift 2
    done
    [ $# = 0 ] || shift
    local dir=$guests/$name qemu terminal
    mkdir "$dir"

    # The kernel puts both archives into one file system: the second has what differs between guests.
    mkdir -p "$dir/ram/bin"
    cp /lab/guest/init "$dir/ram/init"
    chmod +x "$dir/ram/init"
    [ ${#put[@]} = 0 ] || cp "${put[@]}" "$dir/ram/bin/"
    [ -z "$text" ] || printf '%s\n' "$text" >"$dir/ram/command"
    # In a shell of its own: the job stays where it is.
    (cat /boot/guest.cpio && cd "$dir/ram" && find . | busybox cpio -o -H newc 2>/dev/null) >"$dir/initrd"
    mkfifo "$dir/channel.in" "$dir/channel.out"

    case $(uname -m) in
    x86_64) qemu=(qemu-system-x86_64 -machine q35) terminal=ttyS0 append="tsc=reliable $append" ;;
    aarch64) qemu=(qemu-system-aarch64 -machine 'virt,gic-version=host') terminal=ttyAMA0 ;;
    esac
    qemu+=(-name "$name,debug-threads=on" -accel kvm -cpu host -smp "$vcpus" -m "$memory" -nodefaults -display none
        -kernel /boot/guest.kernel -initrd "$dir/initrd" -no-reboot
        -qmp "unix:$dir/qmp,server=on,wait=off" -chardev "file,id=console,path=$dir/console"
        -device virtio-serial-pci -chardev "pipe,id=lab,path=$dir/channel" -device 'virtserialport,chardev=lab,name=lab')
    case $console in
    serial) qemu+=(-serial chardev:console) ;;
    virtio) qemu+=(-device 'virtconsole,chardev=console') terminal=hvc0 ;;
    esac
    if [ -n "$net" ]; then
        local number card=virtio-net-pci,romfile=
        number=$(find "$guests" -name address | wc -l)
        [ "$transport" = pci ] || card=virtio-net-device
        echo "10.0.0.$((11 + number))" >"$dir/address"
        append="$append lab.address=10.0.0.$((11 + number))"
        qemu+=(-device "$card,netdev=net,mac=52:54:00:00:00:$((11 + number))")
    fi
    case $net in
    tap)
        lab_bridge
        [ -e "/sys/class/net/tap$number" ] || ip tuntap add "tap$number" mode tap vnet_hdr
        ip link set "tap$number" master br0 up
        qemu+=(-netdev "tap,id=net,ifname=tap$number,script=no,downscript=no,vhost=$vhost")
        ;;
    poll) # a port of switch_start's
        qemu+=(-machine memory-backend=memory -object "memory-backend-memfd,id=memory,size=$memory,share=on"
            -chardev "socket,id=port,path=/run/port$number" -netdev 'vhost-user,id=net,chardev=port')
        ;;
    esac
    qemu+=(-append "console=$terminal mitigations=off panic=-1 quiet $append" "$@")
    printf '%q ' "${qemu[@]}" >"$dir/command"
    "${qemu[@]}" </dev/null >"$dir/qemu" 2>&1 &
    echo $! >"$dir/pid"
    [ -z "$pin" ] || guest_pin "$name" "$vcpus" "$pin"
}

guest_pins() {
    case $(nproc) in
    [1-5]) printf '%s\n' 1,1 2,3 ;;
    *) printf '%s\n' 2,3 4,5 ;;
    esac
}

guest_pin() { # NAME VCPUS LIST
    local vcpu cpu
    for ((vcpu = 0; vcpu < $2; vcpu++)); do
        cpu=$(cut -d, -f$((vcpu + 1)) <<<"$3,")
        [ -z "$cpu" ] || taskset -pc "$cpu" "$(guest_tid "$1" "$vcpu")" >/dev/null
    done
}

guest_pid() {
    cat "$guests/$1/pid"
}

# QEMU names its threads soon after it has started, and not at once.
guest_tid() { # NAME VCPU
    local pid task
    pid=$(guest_pid "$1")
    while [ -e "/proc/$pid" ]; do
        for task in "/proc/$pid/task"/*; do
            [ "$(cat "$task/comm")" != "CPU $2/KVM" ] || { echo "${task##*/}" && return; }
        done
        sleep 0.1
    done
    echo "guest_tid: QEMU of $1 has ended: $(cat "$guests/$1/qemu")" >&2
    return 1
}

guest_run() { # NAME COMMAND
    local dir=$guests/$1 status
    [ -e "/proc/$(guest_pid "$1")" ] || { echo "guest_run: QEMU of $1 has ended: $(cat "$dir/qemu")" >&2 && return 125; }
    base64 -w 0 <<<"$2" >"$dir/sent"
    echo >>"$dir/sent"
    cat "$dir/sent" >"$dir/channel.in"
    timeout "${GUEST_LIMIT:-300}" sed -u '/^END /q' <"$dir/channel.out" >"$dir/reply" || true
    status=$(sed -n 's/^END //p' "$dir/reply")
    sed '/^END /d' "$dir/reply" | base64 -d
    [ -n "$status" ] || { echo "guest_run: $1 gave no answer to: $2" >&2 && return 125; }
    return "$status"
}

guest_wait() { # NAME [SECONDS]
    GUEST_LIMIT=${2:-180} guest_run "$1" true || {
        cat "$guests/$1/console" "$guests/$1/qemu" >&2
        return 1
    }
}

# A stopped process is one all of whose threads have left the guest.
guest_pause() {
    local task
    kill -STOP "$(guest_pid "$1")"
    for task in "/proc/$(guest_pid "$1")/task"/*; do
        until grep -q '^State:.*T' "$task/status"; do sleep 0.05; done
    done
}

guest_resume() {
    kill -CONT "$(guest_pid "$1")"
}

guest_stop() {
    local pid
    pid=$(guest_pid "$1")
    kill "$pid" 2>/dev/null || true
    wait "$pid" 2>/dev/null || true
}
