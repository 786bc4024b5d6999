# Two guests with virtio-net and vhost on a bridge: `pinger` pings `printer`, which prints on its serial console. Each character is
# a VM-exit to QEMU, and the vCPU that prints is the one that takes the network card's interrupts, so that pings wait for it.
# For jobs, after lib.sh. CASE1_VHOST=off has QEMU move the packets, CASE1_NET=poll a switch that switch_start started.
# shellcheck shell=bash

case1_start() {
    local pins
    mapfile -t pins < <(guest_pins)
    guest_start pinger --net "${CASE1_NET:-tap}" --vhost "${CASE1_VHOST:-on}" --pin "${pins[0]}"
    guest_start printer --net "${CASE1_NET:-tap}" --vhost "${CASE1_VHOST:-on}" --pin "${pins[1]}"
    guest_wait pinger
    guest_wait printer
    # The interrupts of the card, on vCPU 1.
    # shellcheck disable=SC2016 # the guest's shell expands it
    guest_run printer 'for irq in $(grep virtio /proc/interrupts | cut -d: -f1); do echo 1 >/proc/irq/$irq/smp_affinity_list; done 2>/dev/null; true'
    case1_ping 5 0.2 >/dev/null
}

case1_ping() { # COUNT SECONDS-BETWEEN
    guest_run pinger "ping -i $2 -c $1 10.0.0.12"
}

# The printing, on vCPU 1: so many lines every 0.9 seconds, until case1_silence. /tmp/printed-at in the guest has the times.
case1_print() { # LINES
    local terminal
    terminal=$(sed -n 's/.*console=\(tty[A-Z0-9]*\).*/\1/p' /run/guests/printer/command)
    guest_run printer "taskset 2 sh -c 'touch /tmp/printing; n=0; while [ -e /tmp/printing ]; do
        cut -d\" \" -f1 /proc/uptime >>/tmp/printed-at
        i=0; while [ \$i -lt $1 ]; do
            echo \"printing \$n \$i: a line of some eighty characters, as a boot or a busy service has it\" >/dev/$terminal
            i=\$((i + 1))
        done
        n=\$((n + 1)); usleep 900000
    done' >/dev/null 2>&1 &"
}

case1_silence() {
    guest_run printer 'rm /tmp/printing; cat /tmp/printed-at'
}
