# Guests that are recorded from within, by an agent that their host reaches over vsock. For jobs, after lib.sh.
#
#   agent_parts [MODULE...]      what a guest needs for it, and modules of the kernel beside, as options of guest_start: ${agent_parts[@]}
#   agent_start NAME QUESTIONS [HOSTNAME]   starts the agent in a guest that is up, on port 9999, with the token in /tmp/token. The guest's
#                                host name is then HOSTNAME, or NAME
#
#   agent_parts virtio_blk
#   guest_start one "${agent_parts[@]}" -- -device vhost-vsock-pci,guest-cid=3
#   guest_wait one
#   agent_start one cpus,io
#   trapline record --agent vsock:3:9999 --agent-token /tmp/token -o /out/rec -- sleep 3
# shellcheck shell=bash

agent_modules=()
# shellcheck disable=SC2120 # few guests need other modules
agent_parts() { # [MODULE...]: the guest's kernel is the host's, and its RAM disk has not these modules
    local module file
    modprobe vhost_vsock
    agent_modules=(vsock vmw_vsock_virtio_transport_common vmw_vsock_virtio_transport "$@")
    agent_parts=(--put "$(command -v trapline)" --memory 512M)
    for module in "${agent_modules[@]}"; do
        file=$(find "/lib/modules/$(uname -r)" -name "$module.ko*")
        case $file in
        *.xz) xz -dc "$file" >"/tmp/$module.ko" ;;
        *) cp "$file" "/tmp/$module.ko" ;;
        esac
        agent_parts+=(--put "/tmp/$module.ko")
    done
    (umask 077 && echo 0123456789abcdef >/tmp/token)
}

agent_start() { # NAME QUESTIONS [HOSTNAME]
    guest_run "$1" "for module in ${agent_modules[*]}; do insmod /bin/\$module.ko || exit; done
mount -t tracefs none /sys/kernel/tracing; hostname '${3:-$1}'; umask 077; mkdir /data; echo 0123456789abcdef >/token
: >/tmp/agent
trapline agent --listen vsock:9999 --token-file /token --for $2 -o /data >/tmp/agent 2>&1 &
until grep -q listening /tmp/agent; do sleep 0.1; done"
}

# One of a pair's figures, as `trapline info --format json HOST GUEST...` has it: of the guest of that number, from 0.
guest_figure() { # FILE NUMBER MEMBER
    awk -v number="$2" -v member="\"$3\":" '
        /^  "guests": / { inside = 1 }
        inside && /^    \{/ { n++ }
        inside && n == number + 1 && $1 == member { sub(/^[^:]*: /, ""); gsub(/[",]/, ""); print; exit }' "$1"
}
