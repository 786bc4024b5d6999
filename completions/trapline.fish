# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_trapline_global_optspecs
    string join \n color= strict sandbox= h/help V/version
end

function __fish_trapline_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_trapline_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_trapline_using_subcommand
    set -l cmd (__fish_trapline_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c trapline -n "__fish_trapline_needs_command" -l color -d 'Colour what is printed for people: on a terminal (where NO_COLOR is not set, or CLICOLOR_FORCE is), always or never' -r -f -a "auto\t'On a terminal, unless NO_COLOR is set; elsewhere if CLICOLOR_FORCE is'
always\t'Always'
never\t'Never'"
complete -c trapline -n "__fish_trapline_needs_command" -l sandbox -d 'Read files without what reading does not need: network, other programs, files but those of -o. As far as the kernel can (auto), the same and say what is in force (show), or the command ends where it cannot (required), or not (off)' -r -f -a "auto\t'As far as the kernel knows how to'
required\t'The command ends where the kernel has no seccomp, or no Landlock that keeps files from being written, truncated and run (Linux 6.2). What newer ones refuse besides is not required'
show\t'As far as the kernel knows how to, and what is in force is said on standard error'
off\t'Never'"
complete -c trapline -n "__fish_trapline_needs_command" -l strict -d 'End with status 3 where a doubt touches what is printed: losses, a cut, a clock of unknown unit, and whatever stands as a warning below a table'
complete -c trapline -n "__fish_trapline_needs_command" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c trapline -n "__fish_trapline_needs_command" -s V -l version -d 'Print version'
complete -c trapline -n "__fish_trapline_needs_command" -f -a "why" -d 'Find out on this host why a VM is slow: count, record what that asks for, report, and say what to change'
complete -c trapline -n "__fish_trapline_needs_command" -f -a "report" -d 'Show one screen about a recording: what is wrong, in a sentence, and what that rests on'
complete -c trapline -n "__fish_trapline_needs_command" -f -a "diagnose" -d 'Find out why a VM is slow and what to change: findings with evidence, cause, remedies and their price'
complete -c trapline -n "__fish_trapline_needs_command" -f -a "compare" -d 'Show what changed between two recordings or two groups of them, largest effect on time first'
complete -c trapline -n "__fish_trapline_needs_command" -f -a "rules" -d 'List the causes that diagnose looks for, or explain them'
complete -c trapline -n "__fish_trapline_needs_command" -f -a "info" -d 'Show what a recording holds: format, machine, clock, events, VMs and vCPUs, lost events'
complete -c trapline -n "__fish_trapline_needs_command" -f -a "events" -d 'Print the events in time order, as perf script or trace-cmd report -N prints them'
complete -c trapline -n "__fish_trapline_needs_command" -f -a "exits" -d 'Count exits and their time by reason, port, address or register'
complete -c trapline -n "__fish_trapline_needs_command" -f -a "explain" -d 'Print the events that a number of a table, or a finding, is made of'
complete -c trapline -n "__fish_trapline_needs_command" -f -a "vcpus" -d 'Show where each vCPU\'s time went: guest, KVM, VMM, halt polling, halted, waiting for a CPU'
complete -c trapline -n "__fish_trapline_needs_command" -f -a "irqs" -d 'Count the interrupts of each vCPU by vector (accepted, posted, injected), on arm64 by INTID'
complete -c trapline -n "__fish_trapline_needs_command" -f -a "virtqueues" -d 'Count what went through virtqueues: buffers, notifications, interrupts, frames and bytes by device and queue'
complete -c trapline -n "__fish_trapline_needs_command" -f -a "counters" -d 'Show cycles, instructions per cycle and cache misses of each vCPU, in its guest and in the host'
complete -c trapline -n "__fish_trapline_needs_command" -f -a "paths" -d 'Show latency paths (interrupts, wake-ups, I/O) stage by stage, and what slow instances have in common'
complete -c trapline -n "__fish_trapline_needs_command" -f -a "flame" -d 'Show where CPUs were when perf sampled them, as a table, folded stacks, a picture (SVG, HTML) or JSON'
complete -c trapline -n "__fish_trapline_needs_command" -f -a "sched" -d 'Show scheduling latency by task or CPU: delays, preemption, wakers, functions of kworkers'
complete -c trapline -n "__fish_trapline_needs_command" -f -a "record" -d 'Record a host\'s events with little disturbance, with its settings beside them'
complete -c trapline -n "__fish_trapline_needs_command" -f -a "agent" -d 'Record a guest\'s side from within, on its own or for the host that records it'
complete -c trapline -n "__fish_trapline_needs_command" -f -a "overhead" -d 'Measure what recording an event costs on this machine, by CPU'
complete -c trapline -n "__fish_trapline_needs_command" -f -a "bench" -d 'Measure what IPIs, wake-ups, clocks, timers, exits, a network and a disk cost here, in a guest or on a host'
complete -c trapline -n "__fish_trapline_needs_command" -f -a "export" -d 'Write a recording as a file for Perfetto, spreadsheets, tickets or scripts'
complete -c trapline -n "__fish_trapline_needs_command" -f -a "sql" -d 'Ask in SQL: the tables of a recording, or of a folder that holds those of many hosts and days'
complete -c trapline -n "__fish_trapline_needs_command" -f -a "fleet" -d 'Show which of many hosts to look at: problems, news, shifts, outliers, what the sick share, what to open'
complete -c trapline -n "__fish_trapline_needs_command" -f -a "top" -d 'Show what this host\'s vCPUs do now: exits, states, waits for a CPU and behind whom, counted in the kernel'
complete -c trapline -n "__fish_trapline_needs_command" -f -a "watch" -d 'Watch this host\'s VMs for as long as it runs: count, and record and report what goes wrong, within a budget'
complete -c trapline -n "__fish_trapline_needs_command" -f -a "redact" -d 'Make a recording fit for a public ticket: the same numbers, without names, paths and command lines'
complete -c trapline -n "__fish_trapline_needs_command" -f -a "salvage" -d 'Make a recording that is cut off or damaged one that perf and trace-cmd open, and say what was lost'
complete -c trapline -n "__fish_trapline_needs_command" -f -a "facts" -d 'Show this host\'s CPUs, clocks, settings and KVM parameters, and its VMs with their pinning'
complete -c trapline -n "__fish_trapline_needs_command" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c trapline -n "__fish_trapline_using_subcommand why" -l vm -d 'Look at this VM only, by its name as QEMU, libvirt, Proxmox or KubeVirt has it; a Proxmox VM\'s number will do' -r
complete -c trapline -n "__fish_trapline_using_subcommand why" -l pid -d 'The same, by the process of its VMM' -r
complete -c trapline -n "__fish_trapline_using_subcommand why" -l seconds -d 'Record for so many seconds. Ctrl-C ends it sooner, and what was recorded until then is reported' -r
complete -c trapline -n "__fish_trapline_using_subcommand why" -s o -l output -d 'Write to this folder, which must not be there yet: perf.data, facts.json and report.html. The default is the first of trapline-1, trapline-2... that is free' -r -F
complete -c trapline -n "__fish_trapline_using_subcommand why" -l budget -d 'Let recording take so much of a CPU\'s time at most: where one second of counting shows that it would take more, less is recorded' -r
complete -c trapline -n "__fish_trapline_using_subcommand why" -l color -d 'Colour what is printed for people: on a terminal (where NO_COLOR is not set, or CLICOLOR_FORCE is), always or never' -r -f -a "auto\t'On a terminal, unless NO_COLOR is set; elsewhere if CLICOLOR_FORCE is'
always\t'Always'
never\t'Never'"
complete -c trapline -n "__fish_trapline_using_subcommand why" -l sandbox -d 'Read files without what reading does not need: network, other programs, files but those of -o. As far as the kernel can (auto), the same and say what is in force (show), or the command ends where it cannot (required), or not (off)' -r -f -a "auto\t'As far as the kernel knows how to'
required\t'The command ends where the kernel has no seccomp, or no Landlock that keeps files from being written, truncated and run (Linux 6.2). What newer ones refuse besides is not required'
show\t'As far as the kernel knows how to, and what is in force is said on standard error'
off\t'Never'"
complete -c trapline -n "__fish_trapline_using_subcommand why" -l dry-run -d 'Record nothing: say what is missing here, which VMs there are, and which commands would be run'
complete -c trapline -n "__fish_trapline_using_subcommand why" -l strict -d 'End with status 3 where a doubt touches what is printed: losses, a cut, a clock of unknown unit, and whatever stands as a warning below a table'
complete -c trapline -n "__fish_trapline_using_subcommand why" -s h -l help -d 'Print help'
complete -c trapline -n "__fish_trapline_using_subcommand report" -s i -l input -d 'The same as REC, as perf has it. May be repeated. Without any REC, the newest recording in this folder is read: trapline-N, which \'trapline record\' makes, perf.data.guest, perf.data or trace.dat' -r -F
complete -c trapline -n "__fish_trapline_using_subcommand report" -s o -l output -d 'Write the report as one HTML file, whose name ends in .html or .htm; - is standard output' -r -F
complete -c trapline -n "__fish_trapline_using_subcommand report" -l against -d 'With -o: compare the recordings with REC, and show what changed from REC to them. All of them are read again for it' -r -F
complete -c trapline -n "__fish_trapline_using_subcommand report" -l mtree -d 'Read where the VM\'s devices are from FILE, the output of \'info mtree\' in QEMU\'s monitor. It names I/O ports and MMIO addresses. Without it, names come from such a text in --facts, else from the defaults of QEMU\'s machines' -r -F
complete -c trapline -n "__fish_trapline_using_subcommand report" -l kallsyms -d 'Name kernel functions with FILE, a copy of the host\'s /proc/kallsyms made by root, where the recording has no symbols itself. Without FILE, names are of this machine\'s kernel, or of a file, that has the build id' -r -F
complete -c trapline -n "__fish_trapline_using_subcommand report" -l guest-kallsyms -d 'Name functions of guests\' kernels in samples with FILE, a copy of a guest\'s /proc/kallsyms made by root' -r -F
complete -c trapline -n "__fish_trapline_using_subcommand report" -l pairs -d 'With --cost: walk N pairs for each analysis, with it and without. The default is 3; more of them show what is noise' -r
complete -c trapline -n "__fish_trapline_using_subcommand report" -l guest -d 'A recording that was made in a guest of REC at the same time, with the name, UUID or process of the VM whose guest it is. There is one host then. May be repeated. Guests whose recordings and the host\'s name each other need no option' -r
complete -c trapline -n "__fish_trapline_using_subcommand report" -l format -d 'Print a table for people, JSON, or comma-separated values' -r -f -a "table\t'For people'
json\t'For programs'
csv\t'For spreadsheets'"
complete -c trapline -n "__fish_trapline_using_subcommand report" -l formats -d 'For a perf.data without event formats (cut off while it was recorded): take them from another recording of the same kernel, or from a copy of its /sys/kernel/tracing/events' -r -F
complete -c trapline -n "__fish_trapline_using_subcommand report" -l facts -d 'Read from FILE what the recording does not say about its host: the JSON of \'trapline facts\' (everything but devices), the text of \'ps -eLo pid,tid,comm,args\' (threads and VMs), of \'info cpus\' in QEMU\'s monitor or query-cpus-fast in QMP (vCPUs), or of \'info mtree\' (devices). Where the recording has a name itself, that name is used. - is standard input. May be repeated' -r -F
complete -c trapline -n "__fish_trapline_using_subcommand report" -l spool-limit -d 'Unpack at most SIZE (500M, 2T) of a recording that is compressed or comes through a pipe; a longer one is an error. The first 16 MiB are kept in memory, longer ones in a temporary file below TMPDIR. The default is 64G, and less for a compressed file that expands more than recordings do' -r
complete -c trapline -n "__fish_trapline_using_subcommand report" -l max-memory -d 'Take at most SIZE (500M, 4G) of memory; files that are mapped do not count. Where a recording has more threads than fit, those that had the least time become sums called "others". The default is half of what is available, of a container of what its limit leaves' -r
complete -c trapline -n "__fish_trapline_using_subcommand report" -l threads -d 'Use N threads, 1 to 64; the result is the same with any number. The default is one for each CPU, up to 4' -r
complete -c trapline -n "__fish_trapline_using_subcommand report" -l pid -d 'Only vCPUs of this process or thread (sched: tasks; events and info: events)' -r
complete -c trapline -n "__fish_trapline_using_subcommand report" -l vm -d 'Only the VM with this name, UUID, process id or process name (events and info: the events of its vCPUs\' threads)' -r
complete -c trapline -n "__fish_trapline_using_subcommand report" -l vcpu -d 'Only the vCPU with this number; without --vm, of each VM' -r
complete -c trapline -n "__fish_trapline_using_subcommand report" -l cpu -d 'Only events on these CPUs, for example 0-3,8' -r
complete -c trapline -n "__fish_trapline_using_subcommand report" -l time -d 'Only what happens from FROM to TO. Both are times as info and events print them: seconds, or whole numbers where the recording\'s clock counts ticks. Either may be left out' -r
complete -c trapline -n "__fish_trapline_using_subcommand report" -l color -d 'Colour what is printed for people: on a terminal (where NO_COLOR is not set, or CLICOLOR_FORCE is), always or never' -r -f -a "auto\t'On a terminal, unless NO_COLOR is set; elsewhere if CLICOLOR_FORCE is'
always\t'Always'
never\t'Never'"
complete -c trapline -n "__fish_trapline_using_subcommand report" -l sandbox -d 'Read files without what reading does not need: network, other programs, files but those of -o. As far as the kernel can (auto), the same and say what is in force (show), or the command ends where it cannot (required), or not (off)' -r -f -a "auto\t'As far as the kernel knows how to'
required\t'The command ends where the kernel has no seccomp, or no Landlock that keeps files from being written, truncated and run (Linux 6.2). What newer ones refuse besides is not required'
show\t'As far as the kernel knows how to, and what is in force is said on standard error'
off\t'Never'"
complete -c trapline -n "__fish_trapline_using_subcommand report" -l full -d 'Print everything instead of one screen: all findings with their evidence, all rows, all warnings'
complete -c trapline -n "__fish_trapline_using_subcommand report" -l brief -d 'Print ten lines of plain text, for a ticket or a mail: no table, no line beyond 72 columns but for a command, no colour'
complete -c trapline -n "__fish_trapline_using_subcommand report" -l cost -d 'Print what each analysis costs this recording instead, in CPU time of one thread. The recording is walked some hundred times for it: with all analyses, and without one after the other'
complete -c trapline -n "__fish_trapline_using_subcommand report" -l json -d 'Short for --format json'
complete -c trapline -n "__fish_trapline_using_subcommand report" -l csv -d 'Short for --format csv'
complete -c trapline -n "__fish_trapline_using_subcommand report" -l strict -d 'End with status 3 where a doubt touches what is printed: losses, a cut, a clock of unknown unit, and whatever stands as a warning below a table'
complete -c trapline -n "__fish_trapline_using_subcommand report" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c trapline -n "__fish_trapline_using_subcommand diagnose" -s i -l input -d 'The same as REC, as perf has it. May be repeated. Without any REC, the newest recording in this folder is read: trapline-N, which \'trapline record\' makes, perf.data.guest, perf.data or trace.dat' -r -F
complete -c trapline -n "__fish_trapline_using_subcommand diagnose" -l domain -d 'Read the guest\'s definition and check it too: the output of \'virsh dumpxml\', QEMU\'s command line (the output of \'ps -eww -o args\', or /proc/PID/cmdline), or a Proxmox VM\'s .conf. Without a recording only the definition is checked, and the option may be repeated' -r -F
complete -c trapline -n "__fish_trapline_using_subcommand diagnose" -l kallsyms -d 'Name kernel functions with FILE, a copy of the host\'s /proc/kallsyms made by root, where the recording has no symbols itself. Without FILE, names are of this machine\'s kernel, or of a file, that has the build id' -r -F
complete -c trapline -n "__fish_trapline_using_subcommand diagnose" -l guest-kallsyms -d 'Name functions of guests\' kernels in samples with FILE, a copy of a guest\'s /proc/kallsyms made by root' -r -F
complete -c trapline -n "__fish_trapline_using_subcommand diagnose" -l rule -d 'Only check this rule. May be repeated' -r -f -a "guest-died\t''
vcpu-stuck\t''
halt-does-not-halt\t''
guest-spins\t''
timer-port-exits\t''
hpet-mmio-exits\t''
timer-interrupt-storm\t''
halted-target-ipi\t''
console-on-irq-vcpu\t''
slow-storage\t''
userspace-virtio-backend\t''
vmm-polls\t''
cpufreq-governor-kworker\t''
emulated-device\t''
sender-waits-for-memory\t''
vcpu-preempted\t''
vcpu-throttled\t''
host-idle-latency\t''
helper-waits-for-cpu\t''
vcpu-migrates\t''
remote-memory\t''
halt-poll-waste\t''
pause-loop-exits\t''
lock-holder-preempted\t''
memory-taken-away\t''
dirty-logging\t''
nx-hugepage-recovery\t''
ept-violation-storm\t''
pml-full-exits\t''
host-tick-on-isolated-cpu\t''
apic-exits-without-apicv\t''
hyperv-synic-autoeoi\t''
nested-exits\t''
split-lock\t''
stalled-vcpu\t''
lossy-recording\t''
tracing-disturbs\t''
dominant-exit\t''
unexplained-time\t''
slow-path\t''"
complete -c trapline -n "__fish_trapline_using_subcommand diagnose" -l mtree -d 'Read where the VM\'s devices are from FILE, the output of \'info mtree\' in QEMU\'s monitor. It names I/O ports and MMIO addresses. Without it, names come from such a text in --facts, else from the defaults of QEMU\'s machines' -r -F
complete -c trapline -n "__fish_trapline_using_subcommand diagnose" -l guest -d 'A recording that was made in a guest of REC at the same time, with the name, UUID or process of the VM whose guest it is. There is one host then. May be repeated. Guests whose recordings and the host\'s name each other need no option' -r
complete -c trapline -n "__fish_trapline_using_subcommand diagnose" -l format -d 'Print a table for people, JSON, or comma-separated values' -r -f -a "table\t'For people'
json\t'For programs'
csv\t'For spreadsheets'"
complete -c trapline -n "__fish_trapline_using_subcommand diagnose" -l formats -d 'For a perf.data without event formats (cut off while it was recorded): take them from another recording of the same kernel, or from a copy of its /sys/kernel/tracing/events' -r -F
complete -c trapline -n "__fish_trapline_using_subcommand diagnose" -l facts -d 'Read from FILE what the recording does not say about its host: the JSON of \'trapline facts\' (everything but devices), the text of \'ps -eLo pid,tid,comm,args\' (threads and VMs), of \'info cpus\' in QEMU\'s monitor or query-cpus-fast in QMP (vCPUs), or of \'info mtree\' (devices). Where the recording has a name itself, that name is used. - is standard input. May be repeated' -r -F
complete -c trapline -n "__fish_trapline_using_subcommand diagnose" -l spool-limit -d 'Unpack at most SIZE (500M, 2T) of a recording that is compressed or comes through a pipe; a longer one is an error. The first 16 MiB are kept in memory, longer ones in a temporary file below TMPDIR. The default is 64G, and less for a compressed file that expands more than recordings do' -r
complete -c trapline -n "__fish_trapline_using_subcommand diagnose" -l max-memory -d 'Take at most SIZE (500M, 4G) of memory; files that are mapped do not count. Where a recording has more threads than fit, those that had the least time become sums called "others". The default is half of what is available, of a container of what its limit leaves' -r
complete -c trapline -n "__fish_trapline_using_subcommand diagnose" -l threads -d 'Use N threads, 1 to 64; the result is the same with any number. The default is one for each CPU, up to 4' -r
complete -c trapline -n "__fish_trapline_using_subcommand diagnose" -l pid -d 'Only vCPUs of this process or thread (sched: tasks; events and info: events)' -r
complete -c trapline -n "__fish_trapline_using_subcommand diagnose" -l vm -d 'Only the VM with this name, UUID, process id or process name (events and info: the events of its vCPUs\' threads)' -r
complete -c trapline -n "__fish_trapline_using_subcommand diagnose" -l vcpu -d 'Only the vCPU with this number; without --vm, of each VM' -r
complete -c trapline -n "__fish_trapline_using_subcommand diagnose" -l cpu -d 'Only events on these CPUs, for example 0-3,8' -r
complete -c trapline -n "__fish_trapline_using_subcommand diagnose" -l time -d 'Only what happens from FROM to TO. Both are times as info and events print them: seconds, or whole numbers where the recording\'s clock counts ticks. Either may be left out' -r
complete -c trapline -n "__fish_trapline_using_subcommand diagnose" -l color -d 'Colour what is printed for people: on a terminal (where NO_COLOR is not set, or CLICOLOR_FORCE is), always or never' -r -f -a "auto\t'On a terminal, unless NO_COLOR is set; elsewhere if CLICOLOR_FORCE is'
always\t'Always'
never\t'Never'"
complete -c trapline -n "__fish_trapline_using_subcommand diagnose" -l sandbox -d 'Read files without what reading does not need: network, other programs, files but those of -o. As far as the kernel can (auto), the same and say what is in force (show), or the command ends where it cannot (required), or not (off)' -r -f -a "auto\t'As far as the kernel knows how to'
required\t'The command ends where the kernel has no seccomp, or no Landlock that keeps files from being written, truncated and run (Linux 6.2). What newer ones refuse besides is not required'
show\t'As far as the kernel knows how to, and what is in force is said on standard error'
off\t'Never'"
complete -c trapline -n "__fish_trapline_using_subcommand diagnose" -l patch -d 'Print only the change of the definition that the findings ask for, as a unified diff; without a recording what the remarks ask for'
complete -c trapline -n "__fish_trapline_using_subcommand diagnose" -l full -d 'Name every cause that could not be checked, with what it needs, and every one that was looked for and not found, with the least that would have been found'
complete -c trapline -n "__fish_trapline_using_subcommand diagnose" -l json -d 'Short for --format json'
complete -c trapline -n "__fish_trapline_using_subcommand diagnose" -l csv -d 'Short for --format csv'
complete -c trapline -n "__fish_trapline_using_subcommand diagnose" -l strict -d 'End with status 3 where a doubt touches what is printed: losses, a cut, a clock of unknown unit, and whatever stands as a warning below a table'
complete -c trapline -n "__fish_trapline_using_subcommand diagnose" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c trapline -n "__fish_trapline_using_subcommand compare" -l with -d 'The second group of recordings' -r -F
complete -c trapline -n "__fish_trapline_using_subcommand compare" -l guest -d 'A recording that was made in a guest of the first side\'s host at the same time, with the name, UUID or process of the VM whose guest it is. That side has one host then. May be repeated. Guests whose recordings and their host\'s name each other need no option: they stand among the recordings' -r
complete -c trapline -n "__fish_trapline_using_subcommand compare" -l with-guest -d 'The same of the second side\'s host' -r
complete -c trapline -n "__fish_trapline_using_subcommand compare" -l score -d 'With --each, show results that you measured yourself, such as a benchmark\'s: NAME=VALUE,VALUE,... with a value for each recording in order; NAME=VALUE where NAME is the letter of one recording or a part of its path; or a FILE with one line for each NAME and its values. May be repeated' -r
complete -c trapline -n "__fish_trapline_using_subcommand compare" -l confidence -d 'Show changes that are more than noise with at least this confidence, 0 to 1' -r
complete -c trapline -n "__fish_trapline_using_subcommand compare" -l work -d 'Count units of work by the events that have NAME in their names. Without it, work is counted by packets or I/Os where both sides recorded such events, and by guest time' -r
complete -c trapline -n "__fish_trapline_using_subcommand compare" -l limit -d 'Show at most N changes' -r
complete -c trapline -n "__fish_trapline_using_subcommand compare" -l kallsyms -d 'Name kernel functions with FILE, a copy of the host\'s /proc/kallsyms made by root, where the recording has no symbols itself. Without FILE, names are of this machine\'s kernel, or of a file, that has the build id' -r -F
complete -c trapline -n "__fish_trapline_using_subcommand compare" -l guest-kallsyms -d 'Name functions of guests\' kernels in samples with FILE, a copy of a guest\'s /proc/kallsyms made by root' -r -F
complete -c trapline -n "__fish_trapline_using_subcommand compare" -l domain -d 'The definition of the guest on both sides, as diagnose takes it; --a-domain and --b-domain where each has its own' -r -F
complete -c trapline -n "__fish_trapline_using_subcommand compare" -l mtree -d 'Read where the VM\'s devices are from FILE, the output of \'info mtree\' in QEMU\'s monitor. It names I/O ports and MMIO addresses. Without it, names come from such a text in --facts, else from the defaults of QEMU\'s machines' -r -F
complete -c trapline -n "__fish_trapline_using_subcommand compare" -l a-score -d 'What was measured on A: a number of which more is better (NAME=287.6 with a name), a time of which less is (0.18ms), or a FILE with what sysbench, iperf, iperf3 (also --json), fio or ping printed. May be repeated; several runs of one benchmark show how much it varies' -r
complete -c trapline -n "__fish_trapline_using_subcommand compare" -l b-score -d 'The same of B' -r
complete -c trapline -n "__fish_trapline_using_subcommand compare" -l a-domain -d 'The definition of A\'s guest (libvirt\'s domain XML, QEMU\'s command line or a Proxmox VM\'s .conf), as diagnose takes it. Where both sides have one, what differs is named' -r -F
complete -c trapline -n "__fish_trapline_using_subcommand compare" -l b-domain -d 'The same of B\'s guest' -r -F
complete -c trapline -n "__fish_trapline_using_subcommand compare" -l a-facts -d 'Facts of A\'s host, as --facts takes them for both sides; they count before those of --facts. May be repeated' -r -F
complete -c trapline -n "__fish_trapline_using_subcommand compare" -l b-facts -d 'The same of B\'s host' -r -F
complete -c trapline -n "__fish_trapline_using_subcommand compare" -l a-kallsyms -d 'A copy of /proc/kallsyms of A\'s host, in the place of --kallsyms' -r -F
complete -c trapline -n "__fish_trapline_using_subcommand compare" -l b-kallsyms -d 'The same of B\'s host' -r -F
complete -c trapline -n "__fish_trapline_using_subcommand compare" -l format -d 'Print a table for people, JSON, or comma-separated values' -r -f -a "table\t'For people'
json\t'For programs'
csv\t'For spreadsheets'"
complete -c trapline -n "__fish_trapline_using_subcommand compare" -l formats -d 'For a perf.data without event formats (cut off while it was recorded): take them from another recording of the same kernel, or from a copy of its /sys/kernel/tracing/events' -r -F
complete -c trapline -n "__fish_trapline_using_subcommand compare" -l facts -d 'Read from FILE what the recording does not say about its host: the JSON of \'trapline facts\' (everything but devices), the text of \'ps -eLo pid,tid,comm,args\' (threads and VMs), of \'info cpus\' in QEMU\'s monitor or query-cpus-fast in QMP (vCPUs), or of \'info mtree\' (devices). Where the recording has a name itself, that name is used. - is standard input. May be repeated' -r -F
complete -c trapline -n "__fish_trapline_using_subcommand compare" -l spool-limit -d 'Unpack at most SIZE (500M, 2T) of a recording that is compressed or comes through a pipe; a longer one is an error. The first 16 MiB are kept in memory, longer ones in a temporary file below TMPDIR. The default is 64G, and less for a compressed file that expands more than recordings do' -r
complete -c trapline -n "__fish_trapline_using_subcommand compare" -l max-memory -d 'Take at most SIZE (500M, 4G) of memory; files that are mapped do not count. Where a recording has more threads than fit, those that had the least time become sums called "others". The default is half of what is available, of a container of what its limit leaves' -r
complete -c trapline -n "__fish_trapline_using_subcommand compare" -l threads -d 'Use N threads, 1 to 64; the result is the same with any number. The default is one for each CPU, up to 4' -r
complete -c trapline -n "__fish_trapline_using_subcommand compare" -l pid -d 'Only vCPUs of this process or thread (sched: tasks; events and info: events)' -r
complete -c trapline -n "__fish_trapline_using_subcommand compare" -l vm -d 'Only the VM with this name, UUID, process id or process name (events and info: the events of its vCPUs\' threads)' -r
complete -c trapline -n "__fish_trapline_using_subcommand compare" -l vcpu -d 'Only the vCPU with this number; without --vm, of each VM' -r
complete -c trapline -n "__fish_trapline_using_subcommand compare" -l cpu -d 'Only events on these CPUs, for example 0-3,8' -r
complete -c trapline -n "__fish_trapline_using_subcommand compare" -l time -d 'Only what happens from FROM to TO. Both are times as info and events print them: seconds, or whole numbers where the recording\'s clock counts ticks. Either may be left out' -r
complete -c trapline -n "__fish_trapline_using_subcommand compare" -s i -l input -d 'The same as REC, as perf has it. May be repeated.' -r -F
complete -c trapline -n "__fish_trapline_using_subcommand compare" -l color -d 'Colour what is printed for people: on a terminal (where NO_COLOR is not set, or CLICOLOR_FORCE is), always or never' -r -f -a "auto\t'On a terminal, unless NO_COLOR is set; elsewhere if CLICOLOR_FORCE is'
always\t'Always'
never\t'Never'"
complete -c trapline -n "__fish_trapline_using_subcommand compare" -l sandbox -d 'Read files without what reading does not need: network, other programs, files but those of -o. As far as the kernel can (auto), the same and say what is in force (show), or the command ends where it cannot (required), or not (off)' -r -f -a "auto\t'As far as the kernel knows how to'
required\t'The command ends where the kernel has no seccomp, or no Landlock that keeps files from being written, truncated and run (Linux 6.2). What newer ones refuse besides is not required'
show\t'As far as the kernel knows how to, and what is in force is said on standard error'
off\t'Never'"
complete -c trapline -n "__fish_trapline_using_subcommand compare" -l each -d 'Compare each recording with the first, in one table with a column for each'
complete -c trapline -n "__fish_trapline_using_subcommand compare" -l all -d 'Show also changes that are small or may be noise'
complete -c trapline -n "__fish_trapline_using_subcommand compare" -l json -d 'Short for --format json'
complete -c trapline -n "__fish_trapline_using_subcommand compare" -l csv -d 'Short for --format csv'
complete -c trapline -n "__fish_trapline_using_subcommand compare" -l strict -d 'End with status 3 where a doubt touches what is printed: losses, a cut, a clock of unknown unit, and whatever stands as a warning below a table'
complete -c trapline -n "__fish_trapline_using_subcommand compare" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c trapline -n "__fish_trapline_using_subcommand rules" -l format -d 'Print text for people, JSON, or comma-separated values' -r -f -a "table\t'For people'
json\t'For programs'
csv\t'For spreadsheets'"
complete -c trapline -n "__fish_trapline_using_subcommand rules" -l color -d 'Colour what is printed for people: on a terminal (where NO_COLOR is not set, or CLICOLOR_FORCE is), always or never' -r -f -a "auto\t'On a terminal, unless NO_COLOR is set; elsewhere if CLICOLOR_FORCE is'
always\t'Always'
never\t'Never'"
complete -c trapline -n "__fish_trapline_using_subcommand rules" -l sandbox -d 'Read files without what reading does not need: network, other programs, files but those of -o. As far as the kernel can (auto), the same and say what is in force (show), or the command ends where it cannot (required), or not (off)' -r -f -a "auto\t'As far as the kernel knows how to'
required\t'The command ends where the kernel has no seccomp, or no Landlock that keeps files from being written, truncated and run (Linux 6.2). What newer ones refuse besides is not required'
show\t'As far as the kernel knows how to, and what is in force is said on standard error'
off\t'Never'"
complete -c trapline -n "__fish_trapline_using_subcommand rules" -l explain -d 'Explain all rules'
complete -c trapline -n "__fish_trapline_using_subcommand rules" -l json -d 'Short for --format json'
complete -c trapline -n "__fish_trapline_using_subcommand rules" -l csv -d 'Short for --format csv'
complete -c trapline -n "__fish_trapline_using_subcommand rules" -l strict -d 'End with status 3 where a doubt touches what is printed: losses, a cut, a clock of unknown unit, and whatever stands as a warning below a table'
complete -c trapline -n "__fish_trapline_using_subcommand rules" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c trapline -n "__fish_trapline_using_subcommand info" -s i -l input -d 'The same as REC, as perf has it. May be repeated. Without any REC, the newest recording in this folder is read: trapline-N, which \'trapline record\' makes, perf.data.guest, perf.data or trace.dat' -r -F
complete -c trapline -n "__fish_trapline_using_subcommand info" -l guest -d 'A recording of a guest, as GUEST, with the name, UUID or process of the VM whose guest it is. May be repeated' -r
complete -c trapline -n "__fish_trapline_using_subcommand info" -l format -d 'Print a table for people, JSON, or comma-separated values' -r -f -a "table\t'For people'
json\t'For programs'
csv\t'For spreadsheets'"
complete -c trapline -n "__fish_trapline_using_subcommand info" -l formats -d 'For a perf.data without event formats (cut off while it was recorded): take them from another recording of the same kernel, or from a copy of its /sys/kernel/tracing/events' -r -F
complete -c trapline -n "__fish_trapline_using_subcommand info" -l facts -d 'Read from FILE what the recording does not say about its host: the JSON of \'trapline facts\' (everything but devices), the text of \'ps -eLo pid,tid,comm,args\' (threads and VMs), of \'info cpus\' in QEMU\'s monitor or query-cpus-fast in QMP (vCPUs), or of \'info mtree\' (devices). Where the recording has a name itself, that name is used. - is standard input. May be repeated' -r -F
complete -c trapline -n "__fish_trapline_using_subcommand info" -l spool-limit -d 'Unpack at most SIZE (500M, 2T) of a recording that is compressed or comes through a pipe; a longer one is an error. The first 16 MiB are kept in memory, longer ones in a temporary file below TMPDIR. The default is 64G, and less for a compressed file that expands more than recordings do' -r
complete -c trapline -n "__fish_trapline_using_subcommand info" -l max-memory -d 'Take at most SIZE (500M, 4G) of memory; files that are mapped do not count. Where a recording has more threads than fit, those that had the least time become sums called "others". The default is half of what is available, of a container of what its limit leaves' -r
complete -c trapline -n "__fish_trapline_using_subcommand info" -l threads -d 'Use N threads, 1 to 64; the result is the same with any number. The default is one for each CPU, up to 4' -r
complete -c trapline -n "__fish_trapline_using_subcommand info" -l pid -d 'Only vCPUs of this process or thread (sched: tasks; events and info: events)' -r
complete -c trapline -n "__fish_trapline_using_subcommand info" -l vm -d 'Only the VM with this name, UUID, process id or process name (events and info: the events of its vCPUs\' threads)' -r
complete -c trapline -n "__fish_trapline_using_subcommand info" -l vcpu -d 'Only the vCPU with this number; without --vm, of each VM' -r
complete -c trapline -n "__fish_trapline_using_subcommand info" -l cpu -d 'Only events on these CPUs, for example 0-3,8' -r
complete -c trapline -n "__fish_trapline_using_subcommand info" -l time -d 'Only what happens from FROM to TO. Both are times as info and events print them: seconds, or whole numbers where the recording\'s clock counts ticks. Either may be left out' -r
complete -c trapline -n "__fish_trapline_using_subcommand info" -l color -d 'Colour what is printed for people: on a terminal (where NO_COLOR is not set, or CLICOLOR_FORCE is), always or never' -r -f -a "auto\t'On a terminal, unless NO_COLOR is set; elsewhere if CLICOLOR_FORCE is'
always\t'Always'
never\t'Never'"
complete -c trapline -n "__fish_trapline_using_subcommand info" -l sandbox -d 'Read files without what reading does not need: network, other programs, files but those of -o. As far as the kernel can (auto), the same and say what is in force (show), or the command ends where it cannot (required), or not (off)' -r -f -a "auto\t'As far as the kernel knows how to'
required\t'The command ends where the kernel has no seccomp, or no Landlock that keeps files from being written, truncated and run (Linux 6.2). What newer ones refuse besides is not required'
show\t'As far as the kernel knows how to, and what is in force is said on standard error'
off\t'Never'"
complete -c trapline -n "__fish_trapline_using_subcommand info" -l json -d 'Short for --format json'
complete -c trapline -n "__fish_trapline_using_subcommand info" -l csv -d 'Short for --format csv'
complete -c trapline -n "__fish_trapline_using_subcommand info" -l strict -d 'End with status 3 where a doubt touches what is printed: losses, a cut, a clock of unknown unit, and whatever stands as a warning below a table'
complete -c trapline -n "__fish_trapline_using_subcommand info" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c trapline -n "__fish_trapline_using_subcommand events" -s i -l input -d 'The same as REC, as perf has it. May be repeated. Without any REC, the newest recording in this folder is read: trapline-N, which \'trapline record\' makes, perf.data.guest, perf.data or trace.dat' -r -F
complete -c trapline -n "__fish_trapline_using_subcommand events" -l guest -d 'A recording of a guest, as GUEST, with the name, UUID or process of the VM whose guest it is. May be repeated' -r
complete -c trapline -n "__fish_trapline_using_subcommand events" -l event -d 'Only events whose name or SYSTEM:NAME matches; * stands for any characters, ? for one. May be repeated' -r
complete -c trapline -n "__fish_trapline_using_subcommand events" -l as -d 'Print lines in the form of this tool, whichever made the recording' -r -f -a "perf\t'As perf does'
trace-cmd\t'As trace-cmd does'"
complete -c trapline -n "__fish_trapline_using_subcommand events" -l format -d 'Print a table for people, JSON, or comma-separated values' -r -f -a "table\t'For people'
json\t'For programs'
csv\t'For spreadsheets'"
complete -c trapline -n "__fish_trapline_using_subcommand events" -l formats -d 'For a perf.data without event formats (cut off while it was recorded): take them from another recording of the same kernel, or from a copy of its /sys/kernel/tracing/events' -r -F
complete -c trapline -n "__fish_trapline_using_subcommand events" -l facts -d 'Read from FILE what the recording does not say about its host: the JSON of \'trapline facts\' (everything but devices), the text of \'ps -eLo pid,tid,comm,args\' (threads and VMs), of \'info cpus\' in QEMU\'s monitor or query-cpus-fast in QMP (vCPUs), or of \'info mtree\' (devices). Where the recording has a name itself, that name is used. - is standard input. May be repeated' -r -F
complete -c trapline -n "__fish_trapline_using_subcommand events" -l spool-limit -d 'Unpack at most SIZE (500M, 2T) of a recording that is compressed or comes through a pipe; a longer one is an error. The first 16 MiB are kept in memory, longer ones in a temporary file below TMPDIR. The default is 64G, and less for a compressed file that expands more than recordings do' -r
complete -c trapline -n "__fish_trapline_using_subcommand events" -l max-memory -d 'Take at most SIZE (500M, 4G) of memory; files that are mapped do not count. Where a recording has more threads than fit, those that had the least time become sums called "others". The default is half of what is available, of a container of what its limit leaves' -r
complete -c trapline -n "__fish_trapline_using_subcommand events" -l threads -d 'Use N threads, 1 to 64; the result is the same with any number. The default is one for each CPU, up to 4' -r
complete -c trapline -n "__fish_trapline_using_subcommand events" -l pid -d 'Only vCPUs of this process or thread (sched: tasks; events and info: events)' -r
complete -c trapline -n "__fish_trapline_using_subcommand events" -l vm -d 'Only the VM with this name, UUID, process id or process name (events and info: the events of its vCPUs\' threads)' -r
complete -c trapline -n "__fish_trapline_using_subcommand events" -l vcpu -d 'Only the vCPU with this number; without --vm, of each VM' -r
complete -c trapline -n "__fish_trapline_using_subcommand events" -l cpu -d 'Only events on these CPUs, for example 0-3,8' -r
complete -c trapline -n "__fish_trapline_using_subcommand events" -l time -d 'Only what happens from FROM to TO. Both are times as info and events print them: seconds, or whole numbers where the recording\'s clock counts ticks. Either may be left out' -r
complete -c trapline -n "__fish_trapline_using_subcommand events" -l color -d 'Colour what is printed for people: on a terminal (where NO_COLOR is not set, or CLICOLOR_FORCE is), always or never' -r -f -a "auto\t'On a terminal, unless NO_COLOR is set; elsewhere if CLICOLOR_FORCE is'
always\t'Always'
never\t'Never'"
complete -c trapline -n "__fish_trapline_using_subcommand events" -l sandbox -d 'Read files without what reading does not need: network, other programs, files but those of -o. As far as the kernel can (auto), the same and say what is in force (show), or the command ends where it cannot (required), or not (off)' -r -f -a "auto\t'As far as the kernel knows how to'
required\t'The command ends where the kernel has no seccomp, or no Landlock that keeps files from being written, truncated and run (Linux 6.2). What newer ones refuse besides is not required'
show\t'As far as the kernel knows how to, and what is in force is said on standard error'
off\t'Never'"
complete -c trapline -n "__fish_trapline_using_subcommand events" -l console -d 'Instead of events, print what guests wrote to their serial consoles, line by line. The bytes come from kvm_pio (x86) and kvm_mmio (arm64) events'
complete -c trapline -n "__fish_trapline_using_subcommand events" -l ns -d 'Print times to the nanosecond'
complete -c trapline -n "__fish_trapline_using_subcommand events" -l json -d 'Short for --format json'
complete -c trapline -n "__fish_trapline_using_subcommand events" -l csv -d 'Short for --format csv'
complete -c trapline -n "__fish_trapline_using_subcommand events" -l strict -d 'End with status 3 where a doubt touches what is printed: losses, a cut, a clock of unknown unit, and whatever stands as a warning below a table'
complete -c trapline -n "__fish_trapline_using_subcommand events" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c trapline -n "__fish_trapline_using_subcommand exits" -s i -l input -d 'The same as REC, as perf has it. May be repeated. Without any REC, the newest recording in this folder is read: trapline-N, which \'trapline record\' makes, perf.data.guest, perf.data or trace.dat' -r -F
complete -c trapline -n "__fish_trapline_using_subcommand exits" -l guest -d 'A recording of a guest, as GUEST, with the name, UUID or process of the VM whose guest it is. May be repeated' -r
complete -c trapline -n "__fish_trapline_using_subcommand exits" -l event -d 'Show these tables: exits by reason, I/O ports, memory-mapped I/O, model-specific registers' -r -f -a "vmexit\t'Exits by reason'
ioport\t'I/O ports'
mmio\t'Memory-mapped I/O'
msr\t'Model specific registers'"
complete -c trapline -n "__fish_trapline_using_subcommand exits" -l by -d 'Give each VM, each vCPU, each task of a guest, or each function of a guest\'s kernel, rows of its own. With guests\' recordings that is \'task\' unless something else is asked for' -r -f -a "vm\t'VMs'
vcpu\t'vCPUs'
task\t'Tasks, interrupts and softirqs of guests whose recordings are given'
function\t'Functions of the guest\'s kernel in which it was when it left'"
complete -c trapline -n "__fish_trapline_using_subcommand exits" -l as -d 'Time exits as this tool does, and print its table. On arm64, perf measures from entry to exit: the guest\'s time' -r -f -a "perf\t'As perf kvm stat does'"
complete -c trapline -n "__fish_trapline_using_subcommand exits" -l sort -d 'Sort rows by a column, largest first: count, time, mean, max or p99, or any other by what stands above it or by its name in CSV' -r
complete -c trapline -n "__fish_trapline_using_subcommand exits" -l limit -d 'Show only the first N rows of each table. JSON and CSV have all' -r
complete -c trapline -n "__fish_trapline_using_subcommand exits" -l mtree -d 'Read where the VM\'s devices are from FILE, the output of \'info mtree\' in QEMU\'s monitor. It names I/O ports and MMIO addresses. Without it, names come from such a text in --facts, else from the defaults of QEMU\'s machines' -r -F
complete -c trapline -n "__fish_trapline_using_subcommand exits" -l guest-kallsyms -d 'Name functions of guests\' kernels with FILE, a copy of a guest\'s /proc/kallsyms made by root, where the guest\'s own recording has no symbols or is not given' -r -F
complete -c trapline -n "__fish_trapline_using_subcommand exits" -l guest-modules -d 'Read where modules of guests\' kernels are from FILE, a copy of a guest\'s /proc/modules made by root' -r -F
complete -c trapline -n "__fish_trapline_using_subcommand exits" -l format -d 'Print a table for people, JSON, or comma-separated values' -r -f -a "table\t'For people'
json\t'For programs'
csv\t'For spreadsheets'"
complete -c trapline -n "__fish_trapline_using_subcommand exits" -l formats -d 'For a perf.data without event formats (cut off while it was recorded): take them from another recording of the same kernel, or from a copy of its /sys/kernel/tracing/events' -r -F
complete -c trapline -n "__fish_trapline_using_subcommand exits" -l facts -d 'Read from FILE what the recording does not say about its host: the JSON of \'trapline facts\' (everything but devices), the text of \'ps -eLo pid,tid,comm,args\' (threads and VMs), of \'info cpus\' in QEMU\'s monitor or query-cpus-fast in QMP (vCPUs), or of \'info mtree\' (devices). Where the recording has a name itself, that name is used. - is standard input. May be repeated' -r -F
complete -c trapline -n "__fish_trapline_using_subcommand exits" -l spool-limit -d 'Unpack at most SIZE (500M, 2T) of a recording that is compressed or comes through a pipe; a longer one is an error. The first 16 MiB are kept in memory, longer ones in a temporary file below TMPDIR. The default is 64G, and less for a compressed file that expands more than recordings do' -r
complete -c trapline -n "__fish_trapline_using_subcommand exits" -l max-memory -d 'Take at most SIZE (500M, 4G) of memory; files that are mapped do not count. Where a recording has more threads than fit, those that had the least time become sums called "others". The default is half of what is available, of a container of what its limit leaves' -r
complete -c trapline -n "__fish_trapline_using_subcommand exits" -l threads -d 'Use N threads, 1 to 64; the result is the same with any number. The default is one for each CPU, up to 4' -r
complete -c trapline -n "__fish_trapline_using_subcommand exits" -l pid -d 'Only vCPUs of this process or thread (sched: tasks; events and info: events)' -r
complete -c trapline -n "__fish_trapline_using_subcommand exits" -l vm -d 'Only the VM with this name, UUID, process id or process name (events and info: the events of its vCPUs\' threads)' -r
complete -c trapline -n "__fish_trapline_using_subcommand exits" -l vcpu -d 'Only the vCPU with this number; without --vm, of each VM' -r
complete -c trapline -n "__fish_trapline_using_subcommand exits" -l cpu -d 'Only events on these CPUs, for example 0-3,8' -r
complete -c trapline -n "__fish_trapline_using_subcommand exits" -l time -d 'Only what happens from FROM to TO. Both are times as info and events print them: seconds, or whole numbers where the recording\'s clock counts ticks. Either may be left out' -r
complete -c trapline -n "__fish_trapline_using_subcommand exits" -l color -d 'Colour what is printed for people: on a terminal (where NO_COLOR is not set, or CLICOLOR_FORCE is), always or never' -r -f -a "auto\t'On a terminal, unless NO_COLOR is set; elsewhere if CLICOLOR_FORCE is'
always\t'Always'
never\t'Never'"
complete -c trapline -n "__fish_trapline_using_subcommand exits" -l sandbox -d 'Read files without what reading does not need: network, other programs, files but those of -o. As far as the kernel can (auto), the same and say what is in force (show), or the command ends where it cannot (required), or not (off)' -r -f -a "auto\t'As far as the kernel knows how to'
required\t'The command ends where the kernel has no seccomp, or no Landlock that keeps files from being written, truncated and run (Linux 6.2). What newer ones refuse besides is not required'
show\t'As far as the kernel knows how to, and what is in force is said on standard error'
off\t'Never'"
complete -c trapline -n "__fish_trapline_using_subcommand exits" -l wide -d 'Show all columns, for terminals wider than 80 columns'
complete -c trapline -n "__fish_trapline_using_subcommand exits" -l json -d 'Short for --format json'
complete -c trapline -n "__fish_trapline_using_subcommand exits" -l csv -d 'Short for --format csv'
complete -c trapline -n "__fish_trapline_using_subcommand exits" -l strict -d 'End with status 3 where a doubt touches what is printed: losses, a cut, a clock of unknown unit, and whatever stands as a warning below a table'
complete -c trapline -n "__fish_trapline_using_subcommand exits" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c trapline -n "__fish_trapline_using_subcommand explain" -l task -d 'Of exits, those that a task, interrupt or softirq of the guest made, as \'trapline exits --by task\' calls it: ping:433' -r
complete -c trapline -n "__fish_trapline_using_subcommand explain" -l limit -d 'Print the events of the first N things only' -r
complete -c trapline -n "__fish_trapline_using_subcommand explain" -l format -d 'Print a table for people, JSON, or comma-separated values' -r -f -a "table\t'For people'
json\t'For programs'
csv\t'For spreadsheets'"
complete -c trapline -n "__fish_trapline_using_subcommand explain" -l formats -d 'For a perf.data without event formats (cut off while it was recorded): take them from another recording of the same kernel, or from a copy of its /sys/kernel/tracing/events' -r -F
complete -c trapline -n "__fish_trapline_using_subcommand explain" -l facts -d 'Read from FILE what the recording does not say about its host: the JSON of \'trapline facts\' (everything but devices), the text of \'ps -eLo pid,tid,comm,args\' (threads and VMs), of \'info cpus\' in QEMU\'s monitor or query-cpus-fast in QMP (vCPUs), or of \'info mtree\' (devices). Where the recording has a name itself, that name is used. - is standard input. May be repeated' -r -F
complete -c trapline -n "__fish_trapline_using_subcommand explain" -l spool-limit -d 'Unpack at most SIZE (500M, 2T) of a recording that is compressed or comes through a pipe; a longer one is an error. The first 16 MiB are kept in memory, longer ones in a temporary file below TMPDIR. The default is 64G, and less for a compressed file that expands more than recordings do' -r
complete -c trapline -n "__fish_trapline_using_subcommand explain" -l max-memory -d 'Take at most SIZE (500M, 4G) of memory; files that are mapped do not count. Where a recording has more threads than fit, those that had the least time become sums called "others". The default is half of what is available, of a container of what its limit leaves' -r
complete -c trapline -n "__fish_trapline_using_subcommand explain" -l threads -d 'Use N threads, 1 to 64; the result is the same with any number. The default is one for each CPU, up to 4' -r
complete -c trapline -n "__fish_trapline_using_subcommand explain" -l pid -d 'Only vCPUs of this process or thread (sched: tasks; events and info: events)' -r
complete -c trapline -n "__fish_trapline_using_subcommand explain" -l vm -d 'Only the VM with this name, UUID, process id or process name (events and info: the events of its vCPUs\' threads)' -r
complete -c trapline -n "__fish_trapline_using_subcommand explain" -l vcpu -d 'Only the vCPU with this number; without --vm, of each VM' -r
complete -c trapline -n "__fish_trapline_using_subcommand explain" -l cpu -d 'Only events on these CPUs, for example 0-3,8' -r
complete -c trapline -n "__fish_trapline_using_subcommand explain" -l time -d 'Only what happens from FROM to TO. Both are times as info and events print them: seconds, or whole numbers where the recording\'s clock counts ticks. Either may be left out' -r
complete -c trapline -n "__fish_trapline_using_subcommand explain" -l guest -d 'With --task: a recording that was made in a guest of REC at the same time, with the name, UUID or process of the VM whose guest it is. May be repeated. A folder that \'trapline record\' made has its guests with it' -r
complete -c trapline -n "__fish_trapline_using_subcommand explain" -l color -d 'Colour what is printed for people: on a terminal (where NO_COLOR is not set, or CLICOLOR_FORCE is), always or never' -r -f -a "auto\t'On a terminal, unless NO_COLOR is set; elsewhere if CLICOLOR_FORCE is'
always\t'Always'
never\t'Never'"
complete -c trapline -n "__fish_trapline_using_subcommand explain" -l sandbox -d 'Read files without what reading does not need: network, other programs, files but those of -o. As far as the kernel can (auto), the same and say what is in force (show), or the command ends where it cannot (required), or not (off)' -r -f -a "auto\t'As far as the kernel knows how to'
required\t'The command ends where the kernel has no seccomp, or no Landlock that keeps files from being written, truncated and run (Linux 6.2). What newer ones refuse besides is not required'
show\t'As far as the kernel knows how to, and what is in force is said on standard error'
off\t'Never'"
complete -c trapline -n "__fish_trapline_using_subcommand explain" -l json -d 'Short for --format json'
complete -c trapline -n "__fish_trapline_using_subcommand explain" -l csv -d 'Short for --format csv'
complete -c trapline -n "__fish_trapline_using_subcommand explain" -l strict -d 'End with status 3 where a doubt touches what is printed: losses, a cut, a clock of unknown unit, and whatever stands as a warning below a table'
complete -c trapline -n "__fish_trapline_using_subcommand explain" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c trapline -n "__fish_trapline_using_subcommand vcpus" -s i -l input -d 'The same as REC, as perf has it. May be repeated. Without any REC, the newest recording in this folder is read: trapline-N, which \'trapline record\' makes, perf.data.guest, perf.data or trace.dat' -r -F
complete -c trapline -n "__fish_trapline_using_subcommand vcpus" -l guest -d 'A recording of a guest, as GUEST, with the name, UUID or process of the VM whose guest it is. May be repeated' -r
complete -c trapline -n "__fish_trapline_using_subcommand vcpus" -l limit -d 'Show only the first N rows of each table. JSON and CSV have all' -r
complete -c trapline -n "__fish_trapline_using_subcommand vcpus" -l sort -d 'Sort rows by a column, largest first: by what stands above it, or by its name in CSV' -r
complete -c trapline -n "__fish_trapline_using_subcommand vcpus" -l mtree -d 'Read where the VM\'s devices are from FILE, the output of \'info mtree\' in QEMU\'s monitor. It names I/O ports and MMIO addresses. Without it, names come from such a text in --facts, else from the defaults of QEMU\'s machines' -r -F
complete -c trapline -n "__fish_trapline_using_subcommand vcpus" -l format -d 'Print a table for people, JSON, or comma-separated values' -r -f -a "table\t'For people'
json\t'For programs'
csv\t'For spreadsheets'"
complete -c trapline -n "__fish_trapline_using_subcommand vcpus" -l formats -d 'For a perf.data without event formats (cut off while it was recorded): take them from another recording of the same kernel, or from a copy of its /sys/kernel/tracing/events' -r -F
complete -c trapline -n "__fish_trapline_using_subcommand vcpus" -l facts -d 'Read from FILE what the recording does not say about its host: the JSON of \'trapline facts\' (everything but devices), the text of \'ps -eLo pid,tid,comm,args\' (threads and VMs), of \'info cpus\' in QEMU\'s monitor or query-cpus-fast in QMP (vCPUs), or of \'info mtree\' (devices). Where the recording has a name itself, that name is used. - is standard input. May be repeated' -r -F
complete -c trapline -n "__fish_trapline_using_subcommand vcpus" -l spool-limit -d 'Unpack at most SIZE (500M, 2T) of a recording that is compressed or comes through a pipe; a longer one is an error. The first 16 MiB are kept in memory, longer ones in a temporary file below TMPDIR. The default is 64G, and less for a compressed file that expands more than recordings do' -r
complete -c trapline -n "__fish_trapline_using_subcommand vcpus" -l max-memory -d 'Take at most SIZE (500M, 4G) of memory; files that are mapped do not count. Where a recording has more threads than fit, those that had the least time become sums called "others". The default is half of what is available, of a container of what its limit leaves' -r
complete -c trapline -n "__fish_trapline_using_subcommand vcpus" -l threads -d 'Use N threads, 1 to 64; the result is the same with any number. The default is one for each CPU, up to 4' -r
complete -c trapline -n "__fish_trapline_using_subcommand vcpus" -l pid -d 'Only vCPUs of this process or thread (sched: tasks; events and info: events)' -r
complete -c trapline -n "__fish_trapline_using_subcommand vcpus" -l vm -d 'Only the VM with this name, UUID, process id or process name (events and info: the events of its vCPUs\' threads)' -r
complete -c trapline -n "__fish_trapline_using_subcommand vcpus" -l vcpu -d 'Only the vCPU with this number; without --vm, of each VM' -r
complete -c trapline -n "__fish_trapline_using_subcommand vcpus" -l cpu -d 'Only events on these CPUs, for example 0-3,8' -r
complete -c trapline -n "__fish_trapline_using_subcommand vcpus" -l time -d 'Only what happens from FROM to TO. Both are times as info and events print them: seconds, or whole numbers where the recording\'s clock counts ticks. Either may be left out' -r
complete -c trapline -n "__fish_trapline_using_subcommand vcpus" -l color -d 'Colour what is printed for people: on a terminal (where NO_COLOR is not set, or CLICOLOR_FORCE is), always or never' -r -f -a "auto\t'On a terminal, unless NO_COLOR is set; elsewhere if CLICOLOR_FORCE is'
always\t'Always'
never\t'Never'"
complete -c trapline -n "__fish_trapline_using_subcommand vcpus" -l sandbox -d 'Read files without what reading does not need: network, other programs, files but those of -o. As far as the kernel can (auto), the same and say what is in force (show), or the command ends where it cannot (required), or not (off)' -r -f -a "auto\t'As far as the kernel knows how to'
required\t'The command ends where the kernel has no seccomp, or no Landlock that keeps files from being written, truncated and run (Linux 6.2). What newer ones refuse besides is not required'
show\t'As far as the kernel knows how to, and what is in force is said on standard error'
off\t'Never'"
complete -c trapline -n "__fish_trapline_using_subcommand vcpus" -l wide -d 'Show durations instead of percentages, and lists in full, for terminals wider than 80 columns'
complete -c trapline -n "__fish_trapline_using_subcommand vcpus" -l json -d 'Short for --format json'
complete -c trapline -n "__fish_trapline_using_subcommand vcpus" -l csv -d 'Short for --format csv'
complete -c trapline -n "__fish_trapline_using_subcommand vcpus" -l strict -d 'End with status 3 where a doubt touches what is printed: losses, a cut, a clock of unknown unit, and whatever stands as a warning below a table'
complete -c trapline -n "__fish_trapline_using_subcommand vcpus" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c trapline -n "__fish_trapline_using_subcommand irqs" -s i -l input -d 'The same as REC, as perf has it. May be repeated. Without any REC, the newest recording in this folder is read: trapline-N, which \'trapline record\' makes, perf.data.guest, perf.data or trace.dat' -r -F
complete -c trapline -n "__fish_trapline_using_subcommand irqs" -l guest -d 'A recording of a guest, as GUEST, with the name, UUID or process of the VM whose guest it is. May be repeated' -r
complete -c trapline -n "__fish_trapline_using_subcommand irqs" -l limit -d 'Show only the first N rows of each table. JSON and CSV have all' -r
complete -c trapline -n "__fish_trapline_using_subcommand irqs" -l sort -d 'Sort rows by a column, largest first: by what stands above it, or by its name in CSV' -r
complete -c trapline -n "__fish_trapline_using_subcommand irqs" -l format -d 'Print a table for people, JSON, or comma-separated values' -r -f -a "table\t'For people'
json\t'For programs'
csv\t'For spreadsheets'"
complete -c trapline -n "__fish_trapline_using_subcommand irqs" -l formats -d 'For a perf.data without event formats (cut off while it was recorded): take them from another recording of the same kernel, or from a copy of its /sys/kernel/tracing/events' -r -F
complete -c trapline -n "__fish_trapline_using_subcommand irqs" -l facts -d 'Read from FILE what the recording does not say about its host: the JSON of \'trapline facts\' (everything but devices), the text of \'ps -eLo pid,tid,comm,args\' (threads and VMs), of \'info cpus\' in QEMU\'s monitor or query-cpus-fast in QMP (vCPUs), or of \'info mtree\' (devices). Where the recording has a name itself, that name is used. - is standard input. May be repeated' -r -F
complete -c trapline -n "__fish_trapline_using_subcommand irqs" -l spool-limit -d 'Unpack at most SIZE (500M, 2T) of a recording that is compressed or comes through a pipe; a longer one is an error. The first 16 MiB are kept in memory, longer ones in a temporary file below TMPDIR. The default is 64G, and less for a compressed file that expands more than recordings do' -r
complete -c trapline -n "__fish_trapline_using_subcommand irqs" -l max-memory -d 'Take at most SIZE (500M, 4G) of memory; files that are mapped do not count. Where a recording has more threads than fit, those that had the least time become sums called "others". The default is half of what is available, of a container of what its limit leaves' -r
complete -c trapline -n "__fish_trapline_using_subcommand irqs" -l threads -d 'Use N threads, 1 to 64; the result is the same with any number. The default is one for each CPU, up to 4' -r
complete -c trapline -n "__fish_trapline_using_subcommand irqs" -l pid -d 'Only vCPUs of this process or thread (sched: tasks; events and info: events)' -r
complete -c trapline -n "__fish_trapline_using_subcommand irqs" -l vm -d 'Only the VM with this name, UUID, process id or process name (events and info: the events of its vCPUs\' threads)' -r
complete -c trapline -n "__fish_trapline_using_subcommand irqs" -l vcpu -d 'Only the vCPU with this number; without --vm, of each VM' -r
complete -c trapline -n "__fish_trapline_using_subcommand irqs" -l cpu -d 'Only events on these CPUs, for example 0-3,8' -r
complete -c trapline -n "__fish_trapline_using_subcommand irqs" -l time -d 'Only what happens from FROM to TO. Both are times as info and events print them: seconds, or whole numbers where the recording\'s clock counts ticks. Either may be left out' -r
complete -c trapline -n "__fish_trapline_using_subcommand irqs" -l color -d 'Colour what is printed for people: on a terminal (where NO_COLOR is not set, or CLICOLOR_FORCE is), always or never' -r -f -a "auto\t'On a terminal, unless NO_COLOR is set; elsewhere if CLICOLOR_FORCE is'
always\t'Always'
never\t'Never'"
complete -c trapline -n "__fish_trapline_using_subcommand irqs" -l sandbox -d 'Read files without what reading does not need: network, other programs, files but those of -o. As far as the kernel can (auto), the same and say what is in force (show), or the command ends where it cannot (required), or not (off)' -r -f -a "auto\t'As far as the kernel knows how to'
required\t'The command ends where the kernel has no seccomp, or no Landlock that keeps files from being written, truncated and run (Linux 6.2). What newer ones refuse besides is not required'
show\t'As far as the kernel knows how to, and what is in force is said on standard error'
off\t'Never'"
complete -c trapline -n "__fish_trapline_using_subcommand irqs" -l json -d 'Short for --format json'
complete -c trapline -n "__fish_trapline_using_subcommand irqs" -l csv -d 'Short for --format csv'
complete -c trapline -n "__fish_trapline_using_subcommand irqs" -l strict -d 'End with status 3 where a doubt touches what is printed: losses, a cut, a clock of unknown unit, and whatever stands as a warning below a table'
complete -c trapline -n "__fish_trapline_using_subcommand irqs" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c trapline -n "__fish_trapline_using_subcommand virtqueues" -s i -l input -d 'The same as REC, as perf has it. May be repeated. Without any REC, the newest recording in this folder is read: trapline-N, which \'trapline record\' makes, perf.data.guest, perf.data or trace.dat' -r -F
complete -c trapline -n "__fish_trapline_using_subcommand virtqueues" -l guest -d 'A recording of a guest, as GUEST, with the name, UUID or process of the VM whose guest it is. May be repeated' -r
complete -c trapline -n "__fish_trapline_using_subcommand virtqueues" -l mtree -d 'Read where the VM\'s devices are from FILE, the output of \'info mtree\' in QEMU\'s monitor. It names the registers by which a guest notifies a device' -r -F
complete -c trapline -n "__fish_trapline_using_subcommand virtqueues" -l limit -d 'Show only the first N rows of each table. JSON and CSV have all' -r
complete -c trapline -n "__fish_trapline_using_subcommand virtqueues" -l sort -d 'Sort rows by a column, largest first: by what stands above it, or by its name in CSV' -r
complete -c trapline -n "__fish_trapline_using_subcommand virtqueues" -l format -d 'Print a table for people, JSON, or comma-separated values' -r -f -a "table\t'For people'
json\t'For programs'
csv\t'For spreadsheets'"
complete -c trapline -n "__fish_trapline_using_subcommand virtqueues" -l formats -d 'For a perf.data without event formats (cut off while it was recorded): take them from another recording of the same kernel, or from a copy of its /sys/kernel/tracing/events' -r -F
complete -c trapline -n "__fish_trapline_using_subcommand virtqueues" -l facts -d 'Read from FILE what the recording does not say about its host: the JSON of \'trapline facts\' (everything but devices), the text of \'ps -eLo pid,tid,comm,args\' (threads and VMs), of \'info cpus\' in QEMU\'s monitor or query-cpus-fast in QMP (vCPUs), or of \'info mtree\' (devices). Where the recording has a name itself, that name is used. - is standard input. May be repeated' -r -F
complete -c trapline -n "__fish_trapline_using_subcommand virtqueues" -l spool-limit -d 'Unpack at most SIZE (500M, 2T) of a recording that is compressed or comes through a pipe; a longer one is an error. The first 16 MiB are kept in memory, longer ones in a temporary file below TMPDIR. The default is 64G, and less for a compressed file that expands more than recordings do' -r
complete -c trapline -n "__fish_trapline_using_subcommand virtqueues" -l max-memory -d 'Take at most SIZE (500M, 4G) of memory; files that are mapped do not count. Where a recording has more threads than fit, those that had the least time become sums called "others". The default is half of what is available, of a container of what its limit leaves' -r
complete -c trapline -n "__fish_trapline_using_subcommand virtqueues" -l threads -d 'Use N threads, 1 to 64; the result is the same with any number. The default is one for each CPU, up to 4' -r
complete -c trapline -n "__fish_trapline_using_subcommand virtqueues" -l pid -d 'Only vCPUs of this process or thread (sched: tasks; events and info: events)' -r
complete -c trapline -n "__fish_trapline_using_subcommand virtqueues" -l vm -d 'Only the VM with this name, UUID, process id or process name (events and info: the events of its vCPUs\' threads)' -r
complete -c trapline -n "__fish_trapline_using_subcommand virtqueues" -l vcpu -d 'Only the vCPU with this number; without --vm, of each VM' -r
complete -c trapline -n "__fish_trapline_using_subcommand virtqueues" -l cpu -d 'Only events on these CPUs, for example 0-3,8' -r
complete -c trapline -n "__fish_trapline_using_subcommand virtqueues" -l time -d 'Only what happens from FROM to TO. Both are times as info and events print them: seconds, or whole numbers where the recording\'s clock counts ticks. Either may be left out' -r
complete -c trapline -n "__fish_trapline_using_subcommand virtqueues" -l color -d 'Colour what is printed for people: on a terminal (where NO_COLOR is not set, or CLICOLOR_FORCE is), always or never' -r -f -a "auto\t'On a terminal, unless NO_COLOR is set; elsewhere if CLICOLOR_FORCE is'
always\t'Always'
never\t'Never'"
complete -c trapline -n "__fish_trapline_using_subcommand virtqueues" -l sandbox -d 'Read files without what reading does not need: network, other programs, files but those of -o. As far as the kernel can (auto), the same and say what is in force (show), or the command ends where it cannot (required), or not (off)' -r -f -a "auto\t'As far as the kernel knows how to'
required\t'The command ends where the kernel has no seccomp, or no Landlock that keeps files from being written, truncated and run (Linux 6.2). What newer ones refuse besides is not required'
show\t'As far as the kernel knows how to, and what is in force is said on standard error'
off\t'Never'"
complete -c trapline -n "__fish_trapline_using_subcommand virtqueues" -l wide -d 'Show all columns, for terminals wider than 80 columns'
complete -c trapline -n "__fish_trapline_using_subcommand virtqueues" -l json -d 'Short for --format json'
complete -c trapline -n "__fish_trapline_using_subcommand virtqueues" -l csv -d 'Short for --format csv'
complete -c trapline -n "__fish_trapline_using_subcommand virtqueues" -l strict -d 'End with status 3 where a doubt touches what is printed: losses, a cut, a clock of unknown unit, and whatever stands as a warning below a table'
complete -c trapline -n "__fish_trapline_using_subcommand virtqueues" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c trapline -n "__fish_trapline_using_subcommand counters" -s i -l input -d 'The same as REC, as perf has it. May be repeated. Without any REC, the newest recording in this folder is read: trapline-N, which \'trapline record\' makes, perf.data.guest, perf.data or trace.dat' -r -F
complete -c trapline -n "__fish_trapline_using_subcommand counters" -l guest -d 'A recording of a guest, as GUEST, with the name, UUID or process of the VM whose guest it is. May be repeated' -r
complete -c trapline -n "__fish_trapline_using_subcommand counters" -l limit -d 'Show only the first N rows of each table. JSON and CSV have all' -r
complete -c trapline -n "__fish_trapline_using_subcommand counters" -l sort -d 'Sort rows by a column, largest first: by what stands above it, or by its name in CSV' -r
complete -c trapline -n "__fish_trapline_using_subcommand counters" -l format -d 'Print a table for people, JSON, or comma-separated values' -r -f -a "table\t'For people'
json\t'For programs'
csv\t'For spreadsheets'"
complete -c trapline -n "__fish_trapline_using_subcommand counters" -l formats -d 'For a perf.data without event formats (cut off while it was recorded): take them from another recording of the same kernel, or from a copy of its /sys/kernel/tracing/events' -r -F
complete -c trapline -n "__fish_trapline_using_subcommand counters" -l facts -d 'Read from FILE what the recording does not say about its host: the JSON of \'trapline facts\' (everything but devices), the text of \'ps -eLo pid,tid,comm,args\' (threads and VMs), of \'info cpus\' in QEMU\'s monitor or query-cpus-fast in QMP (vCPUs), or of \'info mtree\' (devices). Where the recording has a name itself, that name is used. - is standard input. May be repeated' -r -F
complete -c trapline -n "__fish_trapline_using_subcommand counters" -l spool-limit -d 'Unpack at most SIZE (500M, 2T) of a recording that is compressed or comes through a pipe; a longer one is an error. The first 16 MiB are kept in memory, longer ones in a temporary file below TMPDIR. The default is 64G, and less for a compressed file that expands more than recordings do' -r
complete -c trapline -n "__fish_trapline_using_subcommand counters" -l max-memory -d 'Take at most SIZE (500M, 4G) of memory; files that are mapped do not count. Where a recording has more threads than fit, those that had the least time become sums called "others". The default is half of what is available, of a container of what its limit leaves' -r
complete -c trapline -n "__fish_trapline_using_subcommand counters" -l threads -d 'Use N threads, 1 to 64; the result is the same with any number. The default is one for each CPU, up to 4' -r
complete -c trapline -n "__fish_trapline_using_subcommand counters" -l pid -d 'Only vCPUs of this process or thread (sched: tasks; events and info: events)' -r
complete -c trapline -n "__fish_trapline_using_subcommand counters" -l vm -d 'Only the VM with this name, UUID, process id or process name (events and info: the events of its vCPUs\' threads)' -r
complete -c trapline -n "__fish_trapline_using_subcommand counters" -l vcpu -d 'Only the vCPU with this number; without --vm, of each VM' -r
complete -c trapline -n "__fish_trapline_using_subcommand counters" -l cpu -d 'Only events on these CPUs, for example 0-3,8' -r
complete -c trapline -n "__fish_trapline_using_subcommand counters" -l time -d 'Only what happens from FROM to TO. Both are times as info and events print them: seconds, or whole numbers where the recording\'s clock counts ticks. Either may be left out' -r
complete -c trapline -n "__fish_trapline_using_subcommand counters" -l color -d 'Colour what is printed for people: on a terminal (where NO_COLOR is not set, or CLICOLOR_FORCE is), always or never' -r -f -a "auto\t'On a terminal, unless NO_COLOR is set; elsewhere if CLICOLOR_FORCE is'
always\t'Always'
never\t'Never'"
complete -c trapline -n "__fish_trapline_using_subcommand counters" -l sandbox -d 'Read files without what reading does not need: network, other programs, files but those of -o. As far as the kernel can (auto), the same and say what is in force (show), or the command ends where it cannot (required), or not (off)' -r -f -a "auto\t'As far as the kernel knows how to'
required\t'The command ends where the kernel has no seccomp, or no Landlock that keeps files from being written, truncated and run (Linux 6.2). What newer ones refuse besides is not required'
show\t'As far as the kernel knows how to, and what is in force is said on standard error'
off\t'Never'"
complete -c trapline -n "__fish_trapline_using_subcommand counters" -l json -d 'Short for --format json'
complete -c trapline -n "__fish_trapline_using_subcommand counters" -l csv -d 'Short for --format csv'
complete -c trapline -n "__fish_trapline_using_subcommand counters" -l strict -d 'End with status 3 where a doubt touches what is printed: losses, a cut, a clock of unknown unit, and whatever stands as a warning below a table'
complete -c trapline -n "__fish_trapline_using_subcommand counters" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c trapline -n "__fish_trapline_using_subcommand paths" -s i -l input -d 'The same as REC, as perf has it. May be repeated. Without any REC, the newest recording in this folder is read: trapline-N, which \'trapline record\' makes, perf.data.guest, perf.data or trace.dat' -r -F
complete -c trapline -n "__fish_trapline_using_subcommand paths" -l guest -d 'A recording of a guest, as GUEST, with the name, UUID or process of the VM whose guest it is. May be repeated' -r
complete -c trapline -n "__fish_trapline_using_subcommand paths" -l path -d 'Show this built-in path, or the path that FILE describes. Without it, show all built-in paths but those that are for --path only; with guests\' recordings, also those that go through guests. May be repeated' -r -f -a "halt-wake\t''
irqfd\t''
ipi\t''
timer\t''
kick\t''
user-exit\t''
forwarding\t''
packet\t''
disk\t''
guest-ipi\t''
device-irq\t''
page-fault\t''"
complete -c trapline -n "__fish_trapline_using_subcommand paths" -l from -d 'Measure from this event: NAME, SYSTEM:NAME or fn:FUNCTION, with conditions in brackets, such as kvm_pio[port==0x3f8,write==1]' -r
complete -c trapline -n "__fish_trapline_using_subcommand paths" -l to -d 'Measure to this event. Its start is the nearest earlier event that matches --from' -r
complete -c trapline -n "__fish_trapline_using_subcommand paths" -l join -d 'Both events must have the same thread, cpu, vcpu or field (give its name); any demands nothing' -r
complete -c trapline -n "__fish_trapline_using_subcommand paths" -l slow -d 'Call instances slow that take this long or longer (250us, 5ms), instead of looking for a threshold' -r
complete -c trapline -n "__fish_trapline_using_subcommand paths" -l instance -d 'Print one instance of a path: its steps, what went on meanwhile, its events, and a sequence diagram' -r
complete -c trapline -n "__fish_trapline_using_subcommand paths" -l diagram -d 'Draw the sequence diagram of --instance as text, or for Mermaid' -r -f -a "text\t'Columns of text'
mermaid\t'Mermaid\'s sequenceDiagram'"
complete -c trapline -n "__fish_trapline_using_subcommand paths" -l limit -d 'Show only the first N rows of each table. JSON and CSV have all' -r
complete -c trapline -n "__fish_trapline_using_subcommand paths" -l sort -d 'Sort rows by a column, largest first: by what stands above it, or by its name in CSV' -r
complete -c trapline -n "__fish_trapline_using_subcommand paths" -l mtree -d 'Read where the VM\'s devices are from FILE, the output of \'info mtree\' in QEMU\'s monitor. It names I/O ports and MMIO addresses. Without it, names come from such a text in --facts, else from the defaults of QEMU\'s machines' -r -F
complete -c trapline -n "__fish_trapline_using_subcommand paths" -l format -d 'Print a table for people, JSON, or comma-separated values' -r -f -a "table\t'For people'
json\t'For programs'
csv\t'For spreadsheets'"
complete -c trapline -n "__fish_trapline_using_subcommand paths" -l formats -d 'For a perf.data without event formats (cut off while it was recorded): take them from another recording of the same kernel, or from a copy of its /sys/kernel/tracing/events' -r -F
complete -c trapline -n "__fish_trapline_using_subcommand paths" -l facts -d 'Read from FILE what the recording does not say about its host: the JSON of \'trapline facts\' (everything but devices), the text of \'ps -eLo pid,tid,comm,args\' (threads and VMs), of \'info cpus\' in QEMU\'s monitor or query-cpus-fast in QMP (vCPUs), or of \'info mtree\' (devices). Where the recording has a name itself, that name is used. - is standard input. May be repeated' -r -F
complete -c trapline -n "__fish_trapline_using_subcommand paths" -l spool-limit -d 'Unpack at most SIZE (500M, 2T) of a recording that is compressed or comes through a pipe; a longer one is an error. The first 16 MiB are kept in memory, longer ones in a temporary file below TMPDIR. The default is 64G, and less for a compressed file that expands more than recordings do' -r
complete -c trapline -n "__fish_trapline_using_subcommand paths" -l max-memory -d 'Take at most SIZE (500M, 4G) of memory; files that are mapped do not count. Where a recording has more threads than fit, those that had the least time become sums called "others". The default is half of what is available, of a container of what its limit leaves' -r
complete -c trapline -n "__fish_trapline_using_subcommand paths" -l threads -d 'Use N threads, 1 to 64; the result is the same with any number. The default is one for each CPU, up to 4' -r
complete -c trapline -n "__fish_trapline_using_subcommand paths" -l pid -d 'Only vCPUs of this process or thread (sched: tasks; events and info: events)' -r
complete -c trapline -n "__fish_trapline_using_subcommand paths" -l vm -d 'Only the VM with this name, UUID, process id or process name (events and info: the events of its vCPUs\' threads)' -r
complete -c trapline -n "__fish_trapline_using_subcommand paths" -l vcpu -d 'Only the vCPU with this number; without --vm, of each VM' -r
complete -c trapline -n "__fish_trapline_using_subcommand paths" -l cpu -d 'Only events on these CPUs, for example 0-3,8' -r
complete -c trapline -n "__fish_trapline_using_subcommand paths" -l time -d 'Only what happens from FROM to TO. Both are times as info and events print them: seconds, or whole numbers where the recording\'s clock counts ticks. Either may be left out' -r
complete -c trapline -n "__fish_trapline_using_subcommand paths" -l color -d 'Colour what is printed for people: on a terminal (where NO_COLOR is not set, or CLICOLOR_FORCE is), always or never' -r -f -a "auto\t'On a terminal, unless NO_COLOR is set; elsewhere if CLICOLOR_FORCE is'
always\t'Always'
never\t'Never'"
complete -c trapline -n "__fish_trapline_using_subcommand paths" -l sandbox -d 'Read files without what reading does not need: network, other programs, files but those of -o. As far as the kernel can (auto), the same and say what is in force (show), or the command ends where it cannot (required), or not (off)' -r -f -a "auto\t'As far as the kernel knows how to'
required\t'The command ends where the kernel has no seccomp, or no Landlock that keeps files from being written, truncated and run (Linux 6.2). What newer ones refuse besides is not required'
show\t'As far as the kernel knows how to, and what is in force is said on standard error'
off\t'Never'"
complete -c trapline -n "__fish_trapline_using_subcommand paths" -l each -d 'Print every instance: when it reached each step, and what else is known about it'
complete -c trapline -n "__fish_trapline_using_subcommand paths" -l json -d 'Short for --format json'
complete -c trapline -n "__fish_trapline_using_subcommand paths" -l csv -d 'Short for --format csv'
complete -c trapline -n "__fish_trapline_using_subcommand paths" -l strict -d 'End with status 3 where a doubt touches what is printed: losses, a cut, a clock of unknown unit, and whatever stands as a warning below a table'
complete -c trapline -n "__fish_trapline_using_subcommand paths" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c trapline -n "__fish_trapline_using_subcommand flame" -s i -l input -d 'The same as REC, as perf has it. May be repeated. Without any REC, the newest recording in this folder is read: trapline-N, which \'trapline record\' makes, perf.data.guest, perf.data or trace.dat' -r -F
complete -c trapline -n "__fish_trapline_using_subcommand flame" -s o -l output -d 'Write the stacks to FILE. If its name ends in .svg or .html: a flame graph for a browser; in .folded: a line for each stack, for flamegraph.pl, inferno and others; in .json: speedscope\'s file format; in .pb.gz or .pprof: a profile for pprof, Grafana, Parca and others' -r -F
complete -c trapline -n "__fish_trapline_using_subcommand flame" -l as -d 'Write FILE in this form, whatever its name is. A profile for the Firefox Profiler (profiler.firefox.com) is compressed if FILE ends in .gz' -r -f -a "svg\t'A flame graph for a browser'
html\t'A page with a flame graph'
folded\t'A line for each stack'
speedscope\t'Speedscope\'s file format'
pprof\t'A profile for pprof'
firefox\t'A profile for the Firefox Profiler'"
complete -c trapline -n "__fish_trapline_using_subcommand flame" -l event -d 'Show the samples of this event. The default is the one of time with the most samples, else the first that is no tracepoint' -r
complete -c trapline -n "__fish_trapline_using_subcommand flame" -l by -d 'What stands below the stacks that -o writes' -r -f -a "comm\t'The names of threads'
thread\t'Threads'
cpu\t'CPUs'
vm\t'VMs'"
complete -c trapline -n "__fish_trapline_using_subcommand flame" -l unit -d 'What the counts of folded stacks are. Without it they are numbers, unless the text says so in its first line' -r -f -a "samples\t'How many samples there were'
ns\t'Nanoseconds'
us\t'Microseconds, as offcputime and offwaketime of bcc print them'
ms\t'Milliseconds'
s\t'Seconds'"
complete -c trapline -n "__fish_trapline_using_subcommand flame" -l limit -d 'Show only the first N rows of each table; all with 0' -r
complete -c trapline -n "__fish_trapline_using_subcommand flame" -l kallsyms -d 'Name kernel functions with FILE, a copy of the host\'s /proc/kallsyms made by root. Without FILE, names are of this machine\'s kernel, or of a file, that has the build id' -r -F
complete -c trapline -n "__fish_trapline_using_subcommand flame" -l guest-kallsyms -d 'Name functions of guests\' kernels with FILE, a copy of a guest\'s /proc/kallsyms made by root' -r -F
complete -c trapline -n "__fish_trapline_using_subcommand flame" -l guest-modules -d 'Say where modules of guests\' kernels are with FILE, a copy of a guest\'s /proc/modules made by root' -r -F
complete -c trapline -n "__fish_trapline_using_subcommand flame" -l guestmount -d 'Name functions of each guest\'s kernel with DIR/PID/proc/kallsyms (and modules), PID being its VM\'s process, as perf kvm has it' -r -F
complete -c trapline -n "__fish_trapline_using_subcommand flame" -l guest -d 'Put the stacks of REC in the place of what the host knows of a guest. REC was recorded inside the guest at the same time. Where the host has several VMs, NAME says whose it is: the VM\'s name, UUID or process. Without it the events of both show it, where the host\'s has kvm_entry and kvm_exit. May be repeated' -r
complete -c trapline -n "__fish_trapline_using_subcommand flame" -l diff -d 'Show what changed from REC to this recording, B. Shares are compared, so neither has to be as long as the other' -r -F
complete -c trapline -n "__fish_trapline_using_subcommand flame" -l diff-kallsyms -d 'Name kernel functions of B with FILE. The default is that of --kallsyms, which holds until the host boots again' -r -F
complete -c trapline -n "__fish_trapline_using_subcommand flame" -l diff-guest-kallsyms -d 'Name functions of the kernels of B\'s guests with FILE. The default is that of --guest-kallsyms' -r -F
complete -c trapline -n "__fish_trapline_using_subcommand flame" -l symfs -d 'Name functions of user space with the files below DIR, a copy of the recorded machine\'s. Files of which the recording has no build id are taken from here alone' -r -F
complete -c trapline -n "__fish_trapline_using_subcommand flame" -l buildid-dir -d 'Look for files by build id in DIR, a cache as perf\'s. The default is ~/.debug; can be repeated' -r -F
complete -c trapline -n "__fish_trapline_using_subcommand flame" -l debug-dir -d 'Look for debug files in DIR. The default is /usr/lib/debug; can be repeated' -r -F
complete -c trapline -n "__fish_trapline_using_subcommand flame" -l perf-maps -d 'Name functions of just-in-time compilers with the files perf-PID.map in DIR, as they are in /tmp of the recorded machine' -r -F
complete -c trapline -n "__fish_trapline_using_subcommand flame" -l format -d 'Print a table for people, JSON, or comma-separated values' -r -f -a "table\t'For people'
json\t'For programs'
csv\t'For spreadsheets'"
complete -c trapline -n "__fish_trapline_using_subcommand flame" -l formats -d 'For a perf.data without event formats (cut off while it was recorded): take them from another recording of the same kernel, or from a copy of its /sys/kernel/tracing/events' -r -F
complete -c trapline -n "__fish_trapline_using_subcommand flame" -l facts -d 'Read from FILE what the recording does not say about its host: the JSON of \'trapline facts\' (everything but devices), the text of \'ps -eLo pid,tid,comm,args\' (threads and VMs), of \'info cpus\' in QEMU\'s monitor or query-cpus-fast in QMP (vCPUs), or of \'info mtree\' (devices). Where the recording has a name itself, that name is used. - is standard input. May be repeated' -r -F
complete -c trapline -n "__fish_trapline_using_subcommand flame" -l spool-limit -d 'Unpack at most SIZE (500M, 2T) of a recording that is compressed or comes through a pipe; a longer one is an error. The first 16 MiB are kept in memory, longer ones in a temporary file below TMPDIR. The default is 64G, and less for a compressed file that expands more than recordings do' -r
complete -c trapline -n "__fish_trapline_using_subcommand flame" -l max-memory -d 'Take at most SIZE (500M, 4G) of memory; files that are mapped do not count. Where a recording has more threads than fit, those that had the least time become sums called "others". The default is half of what is available, of a container of what its limit leaves' -r
complete -c trapline -n "__fish_trapline_using_subcommand flame" -l threads -d 'Use N threads, 1 to 64; the result is the same with any number. The default is one for each CPU, up to 4' -r
complete -c trapline -n "__fish_trapline_using_subcommand flame" -l pid -d 'Only vCPUs of this process or thread (sched: tasks; events and info: events)' -r
complete -c trapline -n "__fish_trapline_using_subcommand flame" -l vm -d 'Only the VM with this name, UUID, process id or process name (events and info: the events of its vCPUs\' threads)' -r
complete -c trapline -n "__fish_trapline_using_subcommand flame" -l vcpu -d 'Only the vCPU with this number; without --vm, of each VM' -r
complete -c trapline -n "__fish_trapline_using_subcommand flame" -l cpu -d 'Only events on these CPUs, for example 0-3,8' -r
complete -c trapline -n "__fish_trapline_using_subcommand flame" -l time -d 'Only what happens from FROM to TO. Both are times as info and events print them: seconds, or whole numbers where the recording\'s clock counts ticks. Either may be left out' -r
complete -c trapline -n "__fish_trapline_using_subcommand flame" -l color -d 'Colour what is printed for people: on a terminal (where NO_COLOR is not set, or CLICOLOR_FORCE is), always or never' -r -f -a "auto\t'On a terminal, unless NO_COLOR is set; elsewhere if CLICOLOR_FORCE is'
always\t'Always'
never\t'Never'"
complete -c trapline -n "__fish_trapline_using_subcommand flame" -l sandbox -d 'Read files without what reading does not need: network, other programs, files but those of -o. As far as the kernel can (auto), the same and say what is in force (show), or the command ends where it cannot (required), or not (off)' -r -f -a "auto\t'As far as the kernel knows how to'
required\t'The command ends where the kernel has no seccomp, or no Landlock that keeps files from being written, truncated and run (Linux 6.2). What newer ones refuse besides is not required'
show\t'As far as the kernel knows how to, and what is in force is said on standard error'
off\t'Never'"
complete -c trapline -n "__fish_trapline_using_subcommand flame" -l off-cpu -d 'Show what threads waited for without a CPU instead: the time from switch to switch, by the stack with which they left'
complete -c trapline -n "__fish_trapline_using_subcommand flame" -l both -d 'Show the time on and off CPU together. The time on CPU is by switches too, shared out by samples'
complete -c trapline -n "__fish_trapline_using_subcommand flame" -l wakeup -d 'Put the stack of who woke a thread, upside down, upon the stack with which it slept. Needs --off-cpu or --both'
complete -c trapline -n "__fish_trapline_using_subcommand flame" -l guest-exits -d 'Show where guests exited, by the instruction pointers of kvm_exit, one for each exit. These are no samples'
complete -c trapline -n "__fish_trapline_using_subcommand flame" -l idle -d 'Show idle CPUs and idle guests too'
complete -c trapline -n "__fish_trapline_using_subcommand flame" -l no-inline -d 'Do not show inlined functions of user space'
complete -c trapline -n "__fish_trapline_using_subcommand flame" -l json -d 'Short for --format json'
complete -c trapline -n "__fish_trapline_using_subcommand flame" -l csv -d 'Short for --format csv'
complete -c trapline -n "__fish_trapline_using_subcommand flame" -l strict -d 'End with status 3 where a doubt touches what is printed: losses, a cut, a clock of unknown unit, and whatever stands as a warning below a table'
complete -c trapline -n "__fish_trapline_using_subcommand flame" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c trapline -n "__fish_trapline_using_subcommand sched" -s i -l input -d 'The same as REC, as perf has it. May be repeated. Without any REC, the newest recording in this folder is read: trapline-N, which \'trapline record\' makes, perf.data.guest, perf.data or trace.dat' -r -F
complete -c trapline -n "__fish_trapline_using_subcommand sched" -l guest -d 'A recording of a guest, as GUEST, with the name, UUID or process of the VM whose guest it is. May be repeated' -r
complete -c trapline -n "__fish_trapline_using_subcommand sched" -l by -d 'Show a row for each thread, each thread name, or each CPU' -r -f -a "task\t'Threads'
comm\t'All threads of one name'
cpu\t'CPUs'"
complete -c trapline -n "__fish_trapline_using_subcommand sched" -l sort -d 'Sort rows: vms has threads of VMs before all others and each by the longest delay. Else by a column, largest first: mean, max, switches, runtime, woken, preempted, or any other by what stands above it or by its name in CSV' -r
complete -c trapline -n "__fish_trapline_using_subcommand sched" -l as -d 'Count delays as this perf does. Since 6.9 a task that is preempted in the kernel waits, and since 6.12 a delay begins at sched_waking where that is recorded' -r -f -a "perf-6.1\t'Up to 6.8'
perf-6.12\t'Since 6.12'"
complete -c trapline -n "__fish_trapline_using_subcommand sched" -l limit -d 'Show only the first N rows of each table. JSON and CSV have all' -r
complete -c trapline -n "__fish_trapline_using_subcommand sched" -l format -d 'Print a table for people, JSON, or comma-separated values' -r -f -a "table\t'For people'
json\t'For programs'
csv\t'For spreadsheets'"
complete -c trapline -n "__fish_trapline_using_subcommand sched" -l formats -d 'For a perf.data without event formats (cut off while it was recorded): take them from another recording of the same kernel, or from a copy of its /sys/kernel/tracing/events' -r -F
complete -c trapline -n "__fish_trapline_using_subcommand sched" -l facts -d 'Read from FILE what the recording does not say about its host: the JSON of \'trapline facts\' (everything but devices), the text of \'ps -eLo pid,tid,comm,args\' (threads and VMs), of \'info cpus\' in QEMU\'s monitor or query-cpus-fast in QMP (vCPUs), or of \'info mtree\' (devices). Where the recording has a name itself, that name is used. - is standard input. May be repeated' -r -F
complete -c trapline -n "__fish_trapline_using_subcommand sched" -l spool-limit -d 'Unpack at most SIZE (500M, 2T) of a recording that is compressed or comes through a pipe; a longer one is an error. The first 16 MiB are kept in memory, longer ones in a temporary file below TMPDIR. The default is 64G, and less for a compressed file that expands more than recordings do' -r
complete -c trapline -n "__fish_trapline_using_subcommand sched" -l max-memory -d 'Take at most SIZE (500M, 4G) of memory; files that are mapped do not count. Where a recording has more threads than fit, those that had the least time become sums called "others". The default is half of what is available, of a container of what its limit leaves' -r
complete -c trapline -n "__fish_trapline_using_subcommand sched" -l threads -d 'Use N threads, 1 to 64; the result is the same with any number. The default is one for each CPU, up to 4' -r
complete -c trapline -n "__fish_trapline_using_subcommand sched" -l pid -d 'Only vCPUs of this process or thread (sched: tasks; events and info: events)' -r
complete -c trapline -n "__fish_trapline_using_subcommand sched" -l vm -d 'Only the VM with this name, UUID, process id or process name (events and info: the events of its vCPUs\' threads)' -r
complete -c trapline -n "__fish_trapline_using_subcommand sched" -l vcpu -d 'Only the vCPU with this number; without --vm, of each VM' -r
complete -c trapline -n "__fish_trapline_using_subcommand sched" -l cpu -d 'Only events on these CPUs, for example 0-3,8' -r
complete -c trapline -n "__fish_trapline_using_subcommand sched" -l time -d 'Only what happens from FROM to TO. Both are times as info and events print them: seconds, or whole numbers where the recording\'s clock counts ticks. Either may be left out' -r
complete -c trapline -n "__fish_trapline_using_subcommand sched" -l color -d 'Colour what is printed for people: on a terminal (where NO_COLOR is not set, or CLICOLOR_FORCE is), always or never' -r -f -a "auto\t'On a terminal, unless NO_COLOR is set; elsewhere if CLICOLOR_FORCE is'
always\t'Always'
never\t'Never'"
complete -c trapline -n "__fish_trapline_using_subcommand sched" -l sandbox -d 'Read files without what reading does not need: network, other programs, files but those of -o. As far as the kernel can (auto), the same and say what is in force (show), or the command ends where it cannot (required), or not (off)' -r -f -a "auto\t'As far as the kernel knows how to'
required\t'The command ends where the kernel has no seccomp, or no Landlock that keeps files from being written, truncated and run (Linux 6.2). What newer ones refuse besides is not required'
show\t'As far as the kernel knows how to, and what is in force is said on standard error'
off\t'Never'"
complete -c trapline -n "__fish_trapline_using_subcommand sched" -l histogram -d 'Show a histogram of the delays, in powers of two'
complete -c trapline -n "__fish_trapline_using_subcommand sched" -l json -d 'Short for --format json'
complete -c trapline -n "__fish_trapline_using_subcommand sched" -l csv -d 'Short for --format csv'
complete -c trapline -n "__fish_trapline_using_subcommand sched" -l strict -d 'End with status 3 where a doubt touches what is printed: losses, a cut, a clock of unknown unit, and whatever stands as a warning below a table'
complete -c trapline -n "__fish_trapline_using_subcommand sched" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c trapline -n "__fish_trapline_using_subcommand record" -s o -l output -d 'Write to this folder, which must not be there yet: perf.data, and the host\'s settings as facts.json. The default is the first of trapline-1, trapline-2... that is free' -r -F
complete -c trapline -n "__fish_trapline_using_subcommand record" -l for -d 'What the recording is to answer. May be repeated; the default is exits, sched and paths' -r -f -a "exits\t'Exits by reason, port, address and register'
sched\t'Who waited for a CPU, and behind whom'
paths\t'Interrupts, wake-ups and I/O, stage by stage'
stacks\t'Call chains: 99 samples a second on each CPU, and where threads wait'
all\t'All of these'
virtqueues\t'What went through virtqueues, seen from outside: notifications, vhost\'s buffers, tap devices\' frames; in a guest buffers, notifications, interrupts, frames and requests of its virtio devices. It costs a probe or more for each packet'
named\t'None of these: no more than what --event, --probe, --function and --pair name'"
complete -c trapline -n "__fish_trapline_using_subcommand record" -l seconds -d 'Stop after so many seconds. A command that still runs then goes on' -r
complete -c trapline -n "__fish_trapline_using_subcommand record" -s e -l event -d 'Record this tracepoint too, as SYSTEM:NAME, or of its records those that an expression over its fields takes, as the kernel filters them: \'kvm:kvm_pio/port == 0x608/\'. May be repeated. An expression also holds for an event that --for asks for' -r
complete -c trapline -n "__fish_trapline_using_subcommand record" -s C -l cpu -d 'Record on these CPUs alone: 0-3,8' -r
complete -c trapline -n "__fish_trapline_using_subcommand record" -l tid -d 'Record of tracepoints what these threads do, and of the scheduler\'s what is done to them: switches of other threads are left out, so behind whom they waited is known by the switch alone that took their CPU. Samples are of all threads. May be repeated' -r
complete -c trapline -n "__fish_trapline_using_subcommand record" -l keep -d 'Keep the last SECONDS in memory, and write them only when something has happened: the command ended with another status than 0, somebody sent SIGUSR1, or what --until says' -r
complete -c trapline -n "__fish_trapline_using_subcommand record" -l until -d 'With --keep: write when an instance of a path took longer, as \'irqfd > 20ms\'. PATH is one of \'trapline paths --help\', or a file. May be repeated' -r
complete -c trapline -n "__fish_trapline_using_subcommand record" -l times -d 'With --keep: write so many recordings, then end' -r
complete -c trapline -n "__fish_trapline_using_subcommand record" -l memory -d 'With --keep: take this much memory at most. Where the last seconds have more, less of them is kept, and it is said' -r
complete -c trapline -n "__fish_trapline_using_subcommand record" -l disk -d 'With --keep: write no more than this in all; the recording that would go beyond it is not written' -r
complete -c trapline -n "__fish_trapline_using_subcommand record" -l vm -d 'Record this VM only, by its name: events that its vCPUs make, and the scheduler\'s on CPUs where its threads may run' -r
complete -c trapline -n "__fish_trapline_using_subcommand record" -l pid -d 'The same, by the process of its VMM' -r
complete -c trapline -n "__fish_trapline_using_subcommand record" -l agent -d 'Have the agent in a guest record too (\'trapline agent --listen\' there), and put its recording beside this one as guest-NAME.perf.data: vsock:CID:PORT, or tcp:HOST:PORT. May be repeated' -r
complete -c trapline -n "__fish_trapline_using_subcommand record" -l agent-token -d 'With --agent: the file with the token that the agents have too. Nobody but its owner may read it' -r -F
complete -c trapline -n "__fish_trapline_using_subcommand record" -l agent-for -d 'With --agent: what the guests\' recordings are to answer, whatever --for says; an agent may allow less. May be repeated. The default is cpus, and io where --for has paths' -r -f -a "cpus\t'Which thread each CPU ran, who woke it, interrupts, softirqs, when it was idle'
io\t'Packets and block requests on their way out and back, and when programs had what came'
sockets\t'When programs asked to send, and when they had what they received. While this is open, each system call of each thread takes longer'"
complete -c trapline -n "__fish_trapline_using_subcommand record" -l agent-size -d 'With --agent: let each guest\'s recording have this much at most; an agent may allow less' -r
complete -c trapline -n "__fish_trapline_using_subcommand record" -l probe -d 'Probe a function too: \'FUNCTION\' of the kernel, \'/FILE:FUNCTION\' of a program or a library, with \'%return\' behind it where it returns; or a probe as tracefs takes it: \'p:NAME MODULE:FUNCTION ARGUMENTS\', \'/FILE:0xOFFSET\'. May be repeated. Probes are removed at the end; those of a recorder that was killed, at the next start' -r
complete -c trapline -n "__fish_trapline_using_subcommand record" -l function -d 'Record calls of this function of the kernel by its function tracer, with call chains, where there are no kprobes or a function has none. Needs root. May be repeated' -r
complete -c trapline -n "__fish_trapline_using_subcommand record" -l pair -d 'Of event A record each thread\'s last before event B alone: \'A -> B\', or with \'A -> B > 1ms\' the pairs alone that took longer. Each is a tracepoint (kvm:kvm_exit) or what --probe takes. Of a function of a program that is called so often that probing it would slow the program down, calls are looked at in short windows, and the share of the time that was seen is said. Needs BPF. May be repeated' -r
complete -c trapline -n "__fish_trapline_using_subcommand record" -l list-probes -d 'Record nothing: list what --probe and --function take, by a pattern: \'kvm_*\' of the kernel, \'/FILE:*rxq*\' of a program or a library' -r
complete -c trapline -n "__fish_trapline_using_subcommand record" -l budget -d 'Let recording take so much of a CPU\'s time at most, as 2%: what it takes is measured for a tenth of a second before. Of several questions some are left out where it would take more, and where what is left would still take more, nothing is recorded' -r
complete -c trapline -n "__fish_trapline_using_subcommand record" -l ring -d 'Give each CPU a ring buffer of so many KiB, or of a size with its unit (4M). The default is 4096, or what 1/32 of the memory has room for; with --keep and without --until, what --memory has room for' -r
complete -c trapline -n "__fish_trapline_using_subcommand record" -l label -d 'With --store: store this with each recording, as role=NAME, by which the host has its peers. May be repeated' -r
complete -c trapline -n "__fish_trapline_using_subcommand record" -l mask -d 'With --store: mask names in it by the secret that this file has' -r -F
complete -c trapline -n "__fish_trapline_using_subcommand record" -l format -d 'With --check: print a table for people, JSON, or comma-separated values' -r -f -a "table\t'For people'
json\t'For programs'
csv\t'For spreadsheets'"
complete -c trapline -n "__fish_trapline_using_subcommand record" -l store -d 'Write the sums of the recording into the store DIR, as \'trapline export --as parquet\' does, for \'trapline fleet\' and \'trapline sql\'. Without -o the recording is removed then' -r -F
complete -c trapline -n "__fish_trapline_using_subcommand record" -l color -d 'Colour what is printed for people: on a terminal (where NO_COLOR is not set, or CLICOLOR_FORCE is), always or never' -r -f -a "auto\t'On a terminal, unless NO_COLOR is set; elsewhere if CLICOLOR_FORCE is'
always\t'Always'
never\t'Never'"
complete -c trapline -n "__fish_trapline_using_subcommand record" -l sandbox -d 'Read files without what reading does not need: network, other programs, files but those of -o. As far as the kernel can (auto), the same and say what is in force (show), or the command ends where it cannot (required), or not (off)' -r -f -a "auto\t'As far as the kernel knows how to'
required\t'The command ends where the kernel has no seccomp, or no Landlock that keeps files from being written, truncated and run (Linux 6.2). What newer ones refuse besides is not required'
show\t'As far as the kernel knows how to, and what is in force is said on standard error'
off\t'Never'"
complete -c trapline -n "__fish_trapline_using_subcommand record" -l compact -d 'Let programs in the kernel (BPF) write the scheduler\'s and KVM\'s events as records of 24 bytes, which become perf\'s when they are read: who makes the events pays a sixth to a third, and the recorder more. Times are those of CLOCK_MONOTONIC. --keep does it by itself where the kernel takes the programs and no VM, threads or CPUs are chosen'
complete -c trapline -n "__fish_trapline_using_subcommand record" -l no-compact -d 'With --keep: keep perf\'s own records, with perf\'s own clock, which other recordings of that time have too'
complete -c trapline -n "__fish_trapline_using_subcommand record" -l counters -d 'Count cycles, instructions and cache misses of each vCPU, in its guest apart from in the host (\'trapline counters\' shows them), or of the threads that --tid names. They are counted and not sampled, and read once a second'
complete -c trapline -n "__fish_trapline_using_subcommand record" -l check -d 'Record nothing: say which of the permissions, kernel options and settings that recording takes are there, how to get those that are missing, and what works without them. The exit status is 1 where nothing can be recorded'
complete -c trapline -n "__fish_trapline_using_subcommand record" -l json -d 'Short for --format json'
complete -c trapline -n "__fish_trapline_using_subcommand record" -l csv -d 'Short for --format csv'
complete -c trapline -n "__fish_trapline_using_subcommand record" -l strict -d 'End with status 3 where a doubt touches what is printed: losses, a cut, a clock of unknown unit, and whatever stands as a warning below a table'
complete -c trapline -n "__fish_trapline_using_subcommand record" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c trapline -n "__fish_trapline_using_subcommand agent" -s o -l output -d 'Write to this file, which must not be there yet. With --listen: to a file in this folder, which must be there, and be its owner\'s alone' -r -F
complete -c trapline -n "__fish_trapline_using_subcommand agent" -l for -d 'What the recording is to answer. May be repeated; the default is cpus and io' -r -f -a "cpus\t'Which thread each CPU ran, who woke it, interrupts, softirqs, when it was idle'
io\t'Packets and block requests on their way out and back, and when programs had what came'
sockets\t'When programs asked to send, and when they had what they received. While this is open, each system call of each thread takes longer'"
complete -c trapline -n "__fish_trapline_using_subcommand agent" -l time -d 'Stop after so many seconds, whatever a host asks for' -r
complete -c trapline -n "__fish_trapline_using_subcommand agent" -l size -d 'Stop before the file is larger than this, whatever a host asks for' -r
complete -c trapline -n "__fish_trapline_using_subcommand agent" -l listen -d 'Wait for a host that records and has the same token: vsock:PORT, or tcp:ADDRESS:PORT. Without this, listen on nothing' -r
complete -c trapline -n "__fish_trapline_using_subcommand agent" -l token-file -d 'With --listen: the file with the token, at least 16 characters. Nobody but its owner may read it' -r -F
complete -c trapline -n "__fish_trapline_using_subcommand agent" -l color -d 'Colour what is printed for people: on a terminal (where NO_COLOR is not set, or CLICOLOR_FORCE is), always or never' -r -f -a "auto\t'On a terminal, unless NO_COLOR is set; elsewhere if CLICOLOR_FORCE is'
always\t'Always'
never\t'Never'"
complete -c trapline -n "__fish_trapline_using_subcommand agent" -l sandbox -d 'Read files without what reading does not need: network, other programs, files but those of -o. As far as the kernel can (auto), the same and say what is in force (show), or the command ends where it cannot (required), or not (off)' -r -f -a "auto\t'As far as the kernel knows how to'
required\t'The command ends where the kernel has no seccomp, or no Landlock that keeps files from being written, truncated and run (Linux 6.2). What newer ones refuse besides is not required'
show\t'As far as the kernel knows how to, and what is in force is said on standard error'
off\t'Never'"
complete -c trapline -n "__fish_trapline_using_subcommand agent" -l once -d 'With --listen: end after one recording'
complete -c trapline -n "__fish_trapline_using_subcommand agent" -l session -d 'Serve one host on the socket that is standard input. The agent starts itself so for each recording'
complete -c trapline -n "__fish_trapline_using_subcommand agent" -l strict -d 'End with status 3 where a doubt touches what is printed: losses, a cut, a clock of unknown unit, and whatever stands as a warning below a table'
complete -c trapline -n "__fish_trapline_using_subcommand agent" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c trapline -n "__fish_trapline_using_subcommand overhead" -l cpu -d 'Measure on these CPUs alone, for example 0-3,8' -r
complete -c trapline -n "__fish_trapline_using_subcommand overhead" -l format -d 'Print a table for people, JSON, or comma-separated values' -r -f -a "table\t'For people'
json\t'For programs'
csv\t'For spreadsheets'"
complete -c trapline -n "__fish_trapline_using_subcommand overhead" -l color -d 'Colour what is printed for people: on a terminal (where NO_COLOR is not set, or CLICOLOR_FORCE is), always or never' -r -f -a "auto\t'On a terminal, unless NO_COLOR is set; elsewhere if CLICOLOR_FORCE is'
always\t'Always'
never\t'Never'"
complete -c trapline -n "__fish_trapline_using_subcommand overhead" -l sandbox -d 'Read files without what reading does not need: network, other programs, files but those of -o. As far as the kernel can (auto), the same and say what is in force (show), or the command ends where it cannot (required), or not (off)' -r -f -a "auto\t'As far as the kernel knows how to'
required\t'The command ends where the kernel has no seccomp, or no Landlock that keeps files from being written, truncated and run (Linux 6.2). What newer ones refuse besides is not required'
show\t'As far as the kernel knows how to, and what is in force is said on standard error'
off\t'Never'"
complete -c trapline -n "__fish_trapline_using_subcommand overhead" -l json -d 'Short for --format json'
complete -c trapline -n "__fish_trapline_using_subcommand overhead" -l csv -d 'Short for --format csv'
complete -c trapline -n "__fish_trapline_using_subcommand overhead" -l strict -d 'End with status 3 where a doubt touches what is printed: losses, a cut, a clock of unknown unit, and whatever stands as a warning below a table'
complete -c trapline -n "__fish_trapline_using_subcommand overhead" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c trapline -n "__fish_trapline_using_subcommand bench; and not __fish_seen_subcommand_from ipi wake clock timer exits net disk explain help" -l color -d 'Colour what is printed for people: on a terminal (where NO_COLOR is not set, or CLICOLOR_FORCE is), always or never' -r -f -a "auto\t'On a terminal, unless NO_COLOR is set; elsewhere if CLICOLOR_FORCE is'
always\t'Always'
never\t'Never'"
complete -c trapline -n "__fish_trapline_using_subcommand bench; and not __fish_seen_subcommand_from ipi wake clock timer exits net disk explain help" -l sandbox -d 'Read files without what reading does not need: network, other programs, files but those of -o. As far as the kernel can (auto), the same and say what is in force (show), or the command ends where it cannot (required), or not (off)' -r -f -a "auto\t'As far as the kernel knows how to'
required\t'The command ends where the kernel has no seccomp, or no Landlock that keeps files from being written, truncated and run (Linux 6.2). What newer ones refuse besides is not required'
show\t'As far as the kernel knows how to, and what is in force is said on standard error'
off\t'Never'"
complete -c trapline -n "__fish_trapline_using_subcommand bench; and not __fish_seen_subcommand_from ipi wake clock timer exits net disk explain help" -l strict -d 'End with status 3 where a doubt touches what is printed: losses, a cut, a clock of unknown unit, and whatever stands as a warning below a table'
complete -c trapline -n "__fish_trapline_using_subcommand bench; and not __fish_seen_subcommand_from ipi wake clock timer exits net disk explain help" -s h -l help -d 'Print help'
complete -c trapline -n "__fish_trapline_using_subcommand bench; and not __fish_seen_subcommand_from ipi wake clock timer exits net disk explain help" -f -a "ipi" -d 'Measure IPIs: from one CPU to another on its core, on its node, on another node, and to all; to busy and to idle CPUs'
complete -c trapline -n "__fish_trapline_using_subcommand bench; and not __fish_seen_subcommand_from ipi wake clock timer exits net disk explain help" -f -a "wake" -d 'Measure wake-ups of a thread on another CPU, which is idle, long idle or busy: futex, pipe, eventfd'
complete -c trapline -n "__fish_trapline_using_subcommand bench; and not __fish_seen_subcommand_from ipi wake clock timer exits net disk explain help" -f -a "clock" -d 'Measure what reading each clock costs'
complete -c trapline -n "__fish_trapline_using_subcommand bench; and not __fish_seen_subcommand_from ipi wake clock timer exits net disk explain help" -f -a "timer" -d 'Measure how late timers fire, on an idle CPU and on a busy one'
complete -c trapline -n "__fish_trapline_using_subcommand bench; and not __fish_seen_subcommand_from ipi wake clock timer exits net disk explain help" -f -a "exits" -d 'Measure CPUID, reads of I/O ports and of registers in memory: in a guest, each is an exit'
complete -c trapline -n "__fish_trapline_using_subcommand bench; and not __fish_seen_subcommand_from ipi wake clock timer exits net disk explain help" -f -a "net" -d 'Measure round trips of small messages over TCP and UDP, to a peer that the same command starts'
complete -c trapline -n "__fish_trapline_using_subcommand bench; and not __fish_seen_subcommand_from ipi wake clock timer exits net disk explain help" -f -a "disk" -d 'Measure requests of 4 KiB to a disk, one at a time'
complete -c trapline -n "__fish_trapline_using_subcommand bench; and not __fish_seen_subcommand_from ipi wake clock timer exits net disk explain help" -f -a "explain" -d 'Find out what the slowest iterations of a result were, by a recording that was made meanwhile'
complete -c trapline -n "__fish_trapline_using_subcommand bench; and not __fish_seen_subcommand_from ipi wake clock timer exits net disk explain help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c trapline -n "__fish_trapline_using_subcommand bench; and __fish_seen_subcommand_from ipi" -l idle -d 'Let an idle target sleep for TIME before each IPI, in the row that is called so' -r
complete -c trapline -n "__fish_trapline_using_subcommand bench; and __fish_seen_subcommand_from ipi" -s n -l iterations -d 'Measure so many iterations of each row' -r
complete -c trapline -n "__fish_trapline_using_subcommand bench; and __fish_seen_subcommand_from ipi" -l warmup -d 'Leave out so many iterations before them; the very first is shown beside (first)' -r
complete -c trapline -n "__fish_trapline_using_subcommand bench; and __fish_seen_subcommand_from ipi" -l row-time -d 'End a row after TIME (500ms, 2s), however many iterations it has' -r
complete -c trapline -n "__fish_trapline_using_subcommand bench; and __fish_seen_subcommand_from ipi" -l cpu -d 'Use these CPUs alone, for example 0-3,8. The lowest measures' -r
complete -c trapline -n "__fish_trapline_using_subcommand bench; and __fish_seen_subcommand_from ipi" -l label -d 'Call this run NAME, for the columns of \'trapline compare\'' -r
complete -c trapline -n "__fish_trapline_using_subcommand bench; and __fish_seen_subcommand_from ipi" -s o -l output -d 'Write the result to FILE too, as JSON, for \'trapline compare\'' -r -F
complete -c trapline -n "__fish_trapline_using_subcommand bench; and __fish_seen_subcommand_from ipi" -l format -d 'Print a table for people, JSON, or comma-separated values' -r -f -a "table\t'For people'
json\t'For programs'
csv\t'For spreadsheets'"
complete -c trapline -n "__fish_trapline_using_subcommand bench; and __fish_seen_subcommand_from ipi" -l color -d 'Colour what is printed for people: on a terminal (where NO_COLOR is not set, or CLICOLOR_FORCE is), always or never' -r -f -a "auto\t'On a terminal, unless NO_COLOR is set; elsewhere if CLICOLOR_FORCE is'
always\t'Always'
never\t'Never'"
complete -c trapline -n "__fish_trapline_using_subcommand bench; and __fish_seen_subcommand_from ipi" -l sandbox -d 'Read files without what reading does not need: network, other programs, files but those of -o. As far as the kernel can (auto), the same and say what is in force (show), or the command ends where it cannot (required), or not (off)' -r -f -a "auto\t'As far as the kernel knows how to'
required\t'The command ends where the kernel has no seccomp, or no Landlock that keeps files from being written, truncated and run (Linux 6.2). What newer ones refuse besides is not required'
show\t'As far as the kernel knows how to, and what is in force is said on standard error'
off\t'Never'"
complete -c trapline -n "__fish_trapline_using_subcommand bench; and __fish_seen_subcommand_from ipi" -l pairs -d 'Measure every pair of CPUs too, in both directions; at most 64 CPUs'
complete -c trapline -n "__fish_trapline_using_subcommand bench; and __fish_seen_subcommand_from ipi" -l json -d 'Short for --format json'
complete -c trapline -n "__fish_trapline_using_subcommand bench; and __fish_seen_subcommand_from ipi" -l csv -d 'Short for --format csv'
complete -c trapline -n "__fish_trapline_using_subcommand bench; and __fish_seen_subcommand_from ipi" -l strict -d 'End with status 3 where a doubt touches what is printed: losses, a cut, a clock of unknown unit, and whatever stands as a warning below a table'
complete -c trapline -n "__fish_trapline_using_subcommand bench; and __fish_seen_subcommand_from ipi" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c trapline -n "__fish_trapline_using_subcommand bench; and __fish_seen_subcommand_from wake" -l short -d 'Let the target sleep for TIME before it is woken, so short that whoever polls still does' -r
complete -c trapline -n "__fish_trapline_using_subcommand bench; and __fish_seen_subcommand_from wake" -l idle -d 'Let it sleep for TIME, so long that nobody polls any more' -r
complete -c trapline -n "__fish_trapline_using_subcommand bench; and __fish_seen_subcommand_from wake" -s n -l iterations -d 'Measure so many iterations of each row' -r
complete -c trapline -n "__fish_trapline_using_subcommand bench; and __fish_seen_subcommand_from wake" -l warmup -d 'Leave out so many iterations before them; the very first is shown beside (first)' -r
complete -c trapline -n "__fish_trapline_using_subcommand bench; and __fish_seen_subcommand_from wake" -l row-time -d 'End a row after TIME (500ms, 2s), however many iterations it has' -r
complete -c trapline -n "__fish_trapline_using_subcommand bench; and __fish_seen_subcommand_from wake" -l cpu -d 'Use these CPUs alone, for example 0-3,8. The lowest measures' -r
complete -c trapline -n "__fish_trapline_using_subcommand bench; and __fish_seen_subcommand_from wake" -l label -d 'Call this run NAME, for the columns of \'trapline compare\'' -r
complete -c trapline -n "__fish_trapline_using_subcommand bench; and __fish_seen_subcommand_from wake" -s o -l output -d 'Write the result to FILE too, as JSON, for \'trapline compare\'' -r -F
complete -c trapline -n "__fish_trapline_using_subcommand bench; and __fish_seen_subcommand_from wake" -l format -d 'Print a table for people, JSON, or comma-separated values' -r -f -a "table\t'For people'
json\t'For programs'
csv\t'For spreadsheets'"
complete -c trapline -n "__fish_trapline_using_subcommand bench; and __fish_seen_subcommand_from wake" -l color -d 'Colour what is printed for people: on a terminal (where NO_COLOR is not set, or CLICOLOR_FORCE is), always or never' -r -f -a "auto\t'On a terminal, unless NO_COLOR is set; elsewhere if CLICOLOR_FORCE is'
always\t'Always'
never\t'Never'"
complete -c trapline -n "__fish_trapline_using_subcommand bench; and __fish_seen_subcommand_from wake" -l sandbox -d 'Read files without what reading does not need: network, other programs, files but those of -o. As far as the kernel can (auto), the same and say what is in force (show), or the command ends where it cannot (required), or not (off)' -r -f -a "auto\t'As far as the kernel knows how to'
required\t'The command ends where the kernel has no seccomp, or no Landlock that keeps files from being written, truncated and run (Linux 6.2). What newer ones refuse besides is not required'
show\t'As far as the kernel knows how to, and what is in force is said on standard error'
off\t'Never'"
complete -c trapline -n "__fish_trapline_using_subcommand bench; and __fish_seen_subcommand_from wake" -l json -d 'Short for --format json'
complete -c trapline -n "__fish_trapline_using_subcommand bench; and __fish_seen_subcommand_from wake" -l csv -d 'Short for --format csv'
complete -c trapline -n "__fish_trapline_using_subcommand bench; and __fish_seen_subcommand_from wake" -l strict -d 'End with status 3 where a doubt touches what is printed: losses, a cut, a clock of unknown unit, and whatever stands as a warning below a table'
complete -c trapline -n "__fish_trapline_using_subcommand bench; and __fish_seen_subcommand_from wake" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c trapline -n "__fish_trapline_using_subcommand bench; and __fish_seen_subcommand_from clock" -s n -l iterations -d 'Measure so many iterations of each row' -r
complete -c trapline -n "__fish_trapline_using_subcommand bench; and __fish_seen_subcommand_from clock" -l warmup -d 'Leave out so many iterations before them; the very first is shown beside (first)' -r
complete -c trapline -n "__fish_trapline_using_subcommand bench; and __fish_seen_subcommand_from clock" -l row-time -d 'End a row after TIME (500ms, 2s), however many iterations it has' -r
complete -c trapline -n "__fish_trapline_using_subcommand bench; and __fish_seen_subcommand_from clock" -l cpu -d 'Use these CPUs alone, for example 0-3,8. The lowest measures' -r
complete -c trapline -n "__fish_trapline_using_subcommand bench; and __fish_seen_subcommand_from clock" -l label -d 'Call this run NAME, for the columns of \'trapline compare\'' -r
complete -c trapline -n "__fish_trapline_using_subcommand bench; and __fish_seen_subcommand_from clock" -s o -l output -d 'Write the result to FILE too, as JSON, for \'trapline compare\'' -r -F
complete -c trapline -n "__fish_trapline_using_subcommand bench; and __fish_seen_subcommand_from clock" -l format -d 'Print a table for people, JSON, or comma-separated values' -r -f -a "table\t'For people'
json\t'For programs'
csv\t'For spreadsheets'"
complete -c trapline -n "__fish_trapline_using_subcommand bench; and __fish_seen_subcommand_from clock" -l color -d 'Colour what is printed for people: on a terminal (where NO_COLOR is not set, or CLICOLOR_FORCE is), always or never' -r -f -a "auto\t'On a terminal, unless NO_COLOR is set; elsewhere if CLICOLOR_FORCE is'
always\t'Always'
never\t'Never'"
complete -c trapline -n "__fish_trapline_using_subcommand bench; and __fish_seen_subcommand_from clock" -l sandbox -d 'Read files without what reading does not need: network, other programs, files but those of -o. As far as the kernel can (auto), the same and say what is in force (show), or the command ends where it cannot (required), or not (off)' -r -f -a "auto\t'As far as the kernel knows how to'
required\t'The command ends where the kernel has no seccomp, or no Landlock that keeps files from being written, truncated and run (Linux 6.2). What newer ones refuse besides is not required'
show\t'As far as the kernel knows how to, and what is in force is said on standard error'
off\t'Never'"
complete -c trapline -n "__fish_trapline_using_subcommand bench; and __fish_seen_subcommand_from clock" -l each-source -d 'Measure with every clock source that the kernel has, one after another. That changes the clock of the whole machine meanwhile; it is set back at the end, after Ctrl-C too, but not after kill -9. It takes root'
complete -c trapline -n "__fish_trapline_using_subcommand bench; and __fish_seen_subcommand_from clock" -l json -d 'Short for --format json'
complete -c trapline -n "__fish_trapline_using_subcommand bench; and __fish_seen_subcommand_from clock" -l csv -d 'Short for --format csv'
complete -c trapline -n "__fish_trapline_using_subcommand bench; and __fish_seen_subcommand_from clock" -l strict -d 'End with status 3 where a doubt touches what is printed: losses, a cut, a clock of unknown unit, and whatever stands as a warning below a table'
complete -c trapline -n "__fish_trapline_using_subcommand bench; and __fish_seen_subcommand_from clock" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c trapline -n "__fish_trapline_using_subcommand bench; and __fish_seen_subcommand_from timer" -s n -l iterations -d 'Measure so many iterations of each row' -r
complete -c trapline -n "__fish_trapline_using_subcommand bench; and __fish_seen_subcommand_from timer" -l warmup -d 'Leave out so many iterations before them; the very first is shown beside (first)' -r
complete -c trapline -n "__fish_trapline_using_subcommand bench; and __fish_seen_subcommand_from timer" -l row-time -d 'End a row after TIME (500ms, 2s), however many iterations it has' -r
complete -c trapline -n "__fish_trapline_using_subcommand bench; and __fish_seen_subcommand_from timer" -l cpu -d 'Use these CPUs alone, for example 0-3,8. The lowest measures' -r
complete -c trapline -n "__fish_trapline_using_subcommand bench; and __fish_seen_subcommand_from timer" -l label -d 'Call this run NAME, for the columns of \'trapline compare\'' -r
complete -c trapline -n "__fish_trapline_using_subcommand bench; and __fish_seen_subcommand_from timer" -s o -l output -d 'Write the result to FILE too, as JSON, for \'trapline compare\'' -r -F
complete -c trapline -n "__fish_trapline_using_subcommand bench; and __fish_seen_subcommand_from timer" -l format -d 'Print a table for people, JSON, or comma-separated values' -r -f -a "table\t'For people'
json\t'For programs'
csv\t'For spreadsheets'"
complete -c trapline -n "__fish_trapline_using_subcommand bench; and __fish_seen_subcommand_from timer" -l color -d 'Colour what is printed for people: on a terminal (where NO_COLOR is not set, or CLICOLOR_FORCE is), always or never' -r -f -a "auto\t'On a terminal, unless NO_COLOR is set; elsewhere if CLICOLOR_FORCE is'
always\t'Always'
never\t'Never'"
complete -c trapline -n "__fish_trapline_using_subcommand bench; and __fish_seen_subcommand_from timer" -l sandbox -d 'Read files without what reading does not need: network, other programs, files but those of -o. As far as the kernel can (auto), the same and say what is in force (show), or the command ends where it cannot (required), or not (off)' -r -f -a "auto\t'As far as the kernel knows how to'
required\t'The command ends where the kernel has no seccomp, or no Landlock that keeps files from being written, truncated and run (Linux 6.2). What newer ones refuse besides is not required'
show\t'As far as the kernel knows how to, and what is in force is said on standard error'
off\t'Never'"
complete -c trapline -n "__fish_trapline_using_subcommand bench; and __fish_seen_subcommand_from timer" -l json -d 'Short for --format json'
complete -c trapline -n "__fish_trapline_using_subcommand bench; and __fish_seen_subcommand_from timer" -l csv -d 'Short for --format csv'
complete -c trapline -n "__fish_trapline_using_subcommand bench; and __fish_seen_subcommand_from timer" -l strict -d 'End with status 3 where a doubt touches what is printed: losses, a cut, a clock of unknown unit, and whatever stands as a warning below a table'
complete -c trapline -n "__fish_trapline_using_subcommand bench; and __fish_seen_subcommand_from timer" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c trapline -n "__fish_trapline_using_subcommand bench; and __fish_seen_subcommand_from exits" -s n -l iterations -d 'Measure so many iterations of each row' -r
complete -c trapline -n "__fish_trapline_using_subcommand bench; and __fish_seen_subcommand_from exits" -l warmup -d 'Leave out so many iterations before them; the very first is shown beside (first)' -r
complete -c trapline -n "__fish_trapline_using_subcommand bench; and __fish_seen_subcommand_from exits" -l row-time -d 'End a row after TIME (500ms, 2s), however many iterations it has' -r
complete -c trapline -n "__fish_trapline_using_subcommand bench; and __fish_seen_subcommand_from exits" -l cpu -d 'Use these CPUs alone, for example 0-3,8. The lowest measures' -r
complete -c trapline -n "__fish_trapline_using_subcommand bench; and __fish_seen_subcommand_from exits" -l label -d 'Call this run NAME, for the columns of \'trapline compare\'' -r
complete -c trapline -n "__fish_trapline_using_subcommand bench; and __fish_seen_subcommand_from exits" -s o -l output -d 'Write the result to FILE too, as JSON, for \'trapline compare\'' -r -F
complete -c trapline -n "__fish_trapline_using_subcommand bench; and __fish_seen_subcommand_from exits" -l format -d 'Print a table for people, JSON, or comma-separated values' -r -f -a "table\t'For people'
json\t'For programs'
csv\t'For spreadsheets'"
complete -c trapline -n "__fish_trapline_using_subcommand bench; and __fish_seen_subcommand_from exits" -l color -d 'Colour what is printed for people: on a terminal (where NO_COLOR is not set, or CLICOLOR_FORCE is), always or never' -r -f -a "auto\t'On a terminal, unless NO_COLOR is set; elsewhere if CLICOLOR_FORCE is'
always\t'Always'
never\t'Never'"
complete -c trapline -n "__fish_trapline_using_subcommand bench; and __fish_seen_subcommand_from exits" -l sandbox -d 'Read files without what reading does not need: network, other programs, files but those of -o. As far as the kernel can (auto), the same and say what is in force (show), or the command ends where it cannot (required), or not (off)' -r -f -a "auto\t'As far as the kernel knows how to'
required\t'The command ends where the kernel has no seccomp, or no Landlock that keeps files from being written, truncated and run (Linux 6.2). What newer ones refuse besides is not required'
show\t'As far as the kernel knows how to, and what is in force is said on standard error'
off\t'Never'"
complete -c trapline -n "__fish_trapline_using_subcommand bench; and __fish_seen_subcommand_from exits" -l json -d 'Short for --format json'
complete -c trapline -n "__fish_trapline_using_subcommand bench; and __fish_seen_subcommand_from exits" -l csv -d 'Short for --format csv'
complete -c trapline -n "__fish_trapline_using_subcommand bench; and __fish_seen_subcommand_from exits" -l strict -d 'End with status 3 where a doubt touches what is printed: losses, a cut, a clock of unknown unit, and whatever stands as a warning below a table'
complete -c trapline -n "__fish_trapline_using_subcommand bench; and __fish_seen_subcommand_from exits" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c trapline -n "__fish_trapline_using_subcommand bench; and __fish_seen_subcommand_from net" -l serve -d 'Be the peer: answer at ADDR (10.0.0.2:7700) over TCP and UDP until Ctrl-C, and measure nothing. A port of 0 is any that is free. Whoever reaches the address is answered' -r
complete -c trapline -n "__fish_trapline_using_subcommand bench; and __fish_seen_subcommand_from net" -l connect -d 'Measure against the peer at ADDR. Without it, against one of this machine\'s own, over loopback' -r
complete -c trapline -n "__fish_trapline_using_subcommand bench; and __fish_seen_subcommand_from net" -l size -d 'Send messages of so many bytes, 32 to 65000' -r
complete -c trapline -n "__fish_trapline_using_subcommand bench; and __fish_seen_subcommand_from net" -s n -l iterations -d 'Measure so many iterations of each row' -r
complete -c trapline -n "__fish_trapline_using_subcommand bench; and __fish_seen_subcommand_from net" -l warmup -d 'Leave out so many iterations before them; the very first is shown beside (first)' -r
complete -c trapline -n "__fish_trapline_using_subcommand bench; and __fish_seen_subcommand_from net" -l row-time -d 'End a row after TIME (500ms, 2s), however many iterations it has' -r
complete -c trapline -n "__fish_trapline_using_subcommand bench; and __fish_seen_subcommand_from net" -l cpu -d 'Use these CPUs alone, for example 0-3,8. The lowest measures' -r
complete -c trapline -n "__fish_trapline_using_subcommand bench; and __fish_seen_subcommand_from net" -l label -d 'Call this run NAME, for the columns of \'trapline compare\'' -r
complete -c trapline -n "__fish_trapline_using_subcommand bench; and __fish_seen_subcommand_from net" -s o -l output -d 'Write the result to FILE too, as JSON, for \'trapline compare\'' -r -F
complete -c trapline -n "__fish_trapline_using_subcommand bench; and __fish_seen_subcommand_from net" -l format -d 'Print a table for people, JSON, or comma-separated values' -r -f -a "table\t'For people'
json\t'For programs'
csv\t'For spreadsheets'"
complete -c trapline -n "__fish_trapline_using_subcommand bench; and __fish_seen_subcommand_from net" -l color -d 'Colour what is printed for people: on a terminal (where NO_COLOR is not set, or CLICOLOR_FORCE is), always or never' -r -f -a "auto\t'On a terminal, unless NO_COLOR is set; elsewhere if CLICOLOR_FORCE is'
always\t'Always'
never\t'Never'"
complete -c trapline -n "__fish_trapline_using_subcommand bench; and __fish_seen_subcommand_from net" -l sandbox -d 'Read files without what reading does not need: network, other programs, files but those of -o. As far as the kernel can (auto), the same and say what is in force (show), or the command ends where it cannot (required), or not (off)' -r -f -a "auto\t'As far as the kernel knows how to'
required\t'The command ends where the kernel has no seccomp, or no Landlock that keeps files from being written, truncated and run (Linux 6.2). What newer ones refuse besides is not required'
show\t'As far as the kernel knows how to, and what is in force is said on standard error'
off\t'Never'"
complete -c trapline -n "__fish_trapline_using_subcommand bench; and __fish_seen_subcommand_from net" -l json -d 'Short for --format json'
complete -c trapline -n "__fish_trapline_using_subcommand bench; and __fish_seen_subcommand_from net" -l csv -d 'Short for --format csv'
complete -c trapline -n "__fish_trapline_using_subcommand bench; and __fish_seen_subcommand_from net" -l strict -d 'End with status 3 where a doubt touches what is printed: losses, a cut, a clock of unknown unit, and whatever stands as a warning below a table'
complete -c trapline -n "__fish_trapline_using_subcommand bench; and __fish_seen_subcommand_from net" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c trapline -n "__fish_trapline_using_subcommand bench; and __fish_seen_subcommand_from disk" -l size -d 'Make a file of this size (64M, 1G) in a folder' -r
complete -c trapline -n "__fish_trapline_using_subcommand bench; and __fish_seen_subcommand_from disk" -s n -l iterations -d 'Measure so many iterations of each row' -r
complete -c trapline -n "__fish_trapline_using_subcommand bench; and __fish_seen_subcommand_from disk" -l warmup -d 'Leave out so many iterations before them; the very first is shown beside (first)' -r
complete -c trapline -n "__fish_trapline_using_subcommand bench; and __fish_seen_subcommand_from disk" -l row-time -d 'End a row after TIME (500ms, 2s), however many iterations it has' -r
complete -c trapline -n "__fish_trapline_using_subcommand bench; and __fish_seen_subcommand_from disk" -l cpu -d 'Use these CPUs alone, for example 0-3,8. The lowest measures' -r
complete -c trapline -n "__fish_trapline_using_subcommand bench; and __fish_seen_subcommand_from disk" -l label -d 'Call this run NAME, for the columns of \'trapline compare\'' -r
complete -c trapline -n "__fish_trapline_using_subcommand bench; and __fish_seen_subcommand_from disk" -s o -l output -d 'Write the result to FILE too, as JSON, for \'trapline compare\'' -r -F
complete -c trapline -n "__fish_trapline_using_subcommand bench; and __fish_seen_subcommand_from disk" -l format -d 'Print a table for people, JSON, or comma-separated values' -r -f -a "table\t'For people'
json\t'For programs'
csv\t'For spreadsheets'"
complete -c trapline -n "__fish_trapline_using_subcommand bench; and __fish_seen_subcommand_from disk" -l color -d 'Colour what is printed for people: on a terminal (where NO_COLOR is not set, or CLICOLOR_FORCE is), always or never' -r -f -a "auto\t'On a terminal, unless NO_COLOR is set; elsewhere if CLICOLOR_FORCE is'
always\t'Always'
never\t'Never'"
complete -c trapline -n "__fish_trapline_using_subcommand bench; and __fish_seen_subcommand_from disk" -l sandbox -d 'Read files without what reading does not need: network, other programs, files but those of -o. As far as the kernel can (auto), the same and say what is in force (show), or the command ends where it cannot (required), or not (off)' -r -f -a "auto\t'As far as the kernel knows how to'
required\t'The command ends where the kernel has no seccomp, or no Landlock that keeps files from being written, truncated and run (Linux 6.2). What newer ones refuse besides is not required'
show\t'As far as the kernel knows how to, and what is in force is said on standard error'
off\t'Never'"
complete -c trapline -n "__fish_trapline_using_subcommand bench; and __fish_seen_subcommand_from disk" -l write -d 'Write too, to a file that is made in the folder'
complete -c trapline -n "__fish_trapline_using_subcommand bench; and __fish_seen_subcommand_from disk" -l json -d 'Short for --format json'
complete -c trapline -n "__fish_trapline_using_subcommand bench; and __fish_seen_subcommand_from disk" -l csv -d 'Short for --format csv'
complete -c trapline -n "__fish_trapline_using_subcommand bench; and __fish_seen_subcommand_from disk" -l strict -d 'End with status 3 where a doubt touches what is printed: losses, a cut, a clock of unknown unit, and whatever stands as a warning below a table'
complete -c trapline -n "__fish_trapline_using_subcommand bench; and __fish_seen_subcommand_from disk" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c trapline -n "__fish_trapline_using_subcommand bench; and __fish_seen_subcommand_from explain" -s i -l input -d 'The same as REC, as perf has it. May be repeated. Without any REC, the newest recording in this folder is read: trapline-N, which \'trapline record\' makes, perf.data.guest, perf.data or trace.dat' -r -F
complete -c trapline -n "__fish_trapline_using_subcommand bench; and __fish_seen_subcommand_from explain" -l guest -d 'A recording of a guest, as GUEST, with the name, UUID or process of the VM whose guest it is. May be repeated' -r
complete -c trapline -n "__fish_trapline_using_subcommand bench; and __fish_seen_subcommand_from explain" -l format -d 'Print a table for people, JSON, or comma-separated values' -r -f -a "table\t'For people'
json\t'For programs'
csv\t'For spreadsheets'"
complete -c trapline -n "__fish_trapline_using_subcommand bench; and __fish_seen_subcommand_from explain" -l formats -d 'For a perf.data without event formats (cut off while it was recorded): take them from another recording of the same kernel, or from a copy of its /sys/kernel/tracing/events' -r -F
complete -c trapline -n "__fish_trapline_using_subcommand bench; and __fish_seen_subcommand_from explain" -l facts -d 'Read from FILE what the recording does not say about its host: the JSON of \'trapline facts\' (everything but devices), the text of \'ps -eLo pid,tid,comm,args\' (threads and VMs), of \'info cpus\' in QEMU\'s monitor or query-cpus-fast in QMP (vCPUs), or of \'info mtree\' (devices). Where the recording has a name itself, that name is used. - is standard input. May be repeated' -r -F
complete -c trapline -n "__fish_trapline_using_subcommand bench; and __fish_seen_subcommand_from explain" -l spool-limit -d 'Unpack at most SIZE (500M, 2T) of a recording that is compressed or comes through a pipe; a longer one is an error. The first 16 MiB are kept in memory, longer ones in a temporary file below TMPDIR. The default is 64G, and less for a compressed file that expands more than recordings do' -r
complete -c trapline -n "__fish_trapline_using_subcommand bench; and __fish_seen_subcommand_from explain" -l max-memory -d 'Take at most SIZE (500M, 4G) of memory; files that are mapped do not count. Where a recording has more threads than fit, those that had the least time become sums called "others". The default is half of what is available, of a container of what its limit leaves' -r
complete -c trapline -n "__fish_trapline_using_subcommand bench; and __fish_seen_subcommand_from explain" -l threads -d 'Use N threads, 1 to 64; the result is the same with any number. The default is one for each CPU, up to 4' -r
complete -c trapline -n "__fish_trapline_using_subcommand bench; and __fish_seen_subcommand_from explain" -l pid -d 'Only vCPUs of this process or thread (sched: tasks; events and info: events)' -r
complete -c trapline -n "__fish_trapline_using_subcommand bench; and __fish_seen_subcommand_from explain" -l vm -d 'Only the VM with this name, UUID, process id or process name (events and info: the events of its vCPUs\' threads)' -r
complete -c trapline -n "__fish_trapline_using_subcommand bench; and __fish_seen_subcommand_from explain" -l vcpu -d 'Only the vCPU with this number; without --vm, of each VM' -r
complete -c trapline -n "__fish_trapline_using_subcommand bench; and __fish_seen_subcommand_from explain" -l cpu -d 'Only events on these CPUs, for example 0-3,8' -r
complete -c trapline -n "__fish_trapline_using_subcommand bench; and __fish_seen_subcommand_from explain" -l time -d 'Only what happens from FROM to TO. Both are times as info and events print them: seconds, or whole numbers where the recording\'s clock counts ticks. Either may be left out' -r
complete -c trapline -n "__fish_trapline_using_subcommand bench; and __fish_seen_subcommand_from explain" -l color -d 'Colour what is printed for people: on a terminal (where NO_COLOR is not set, or CLICOLOR_FORCE is), always or never' -r -f -a "auto\t'On a terminal, unless NO_COLOR is set; elsewhere if CLICOLOR_FORCE is'
always\t'Always'
never\t'Never'"
complete -c trapline -n "__fish_trapline_using_subcommand bench; and __fish_seen_subcommand_from explain" -l sandbox -d 'Read files without what reading does not need: network, other programs, files but those of -o. As far as the kernel can (auto), the same and say what is in force (show), or the command ends where it cannot (required), or not (off)' -r -f -a "auto\t'As far as the kernel knows how to'
required\t'The command ends where the kernel has no seccomp, or no Landlock that keeps files from being written, truncated and run (Linux 6.2). What newer ones refuse besides is not required'
show\t'As far as the kernel knows how to, and what is in force is said on standard error'
off\t'Never'"
complete -c trapline -n "__fish_trapline_using_subcommand bench; and __fish_seen_subcommand_from explain" -l json -d 'Short for --format json'
complete -c trapline -n "__fish_trapline_using_subcommand bench; and __fish_seen_subcommand_from explain" -l csv -d 'Short for --format csv'
complete -c trapline -n "__fish_trapline_using_subcommand bench; and __fish_seen_subcommand_from explain" -l strict -d 'End with status 3 where a doubt touches what is printed: losses, a cut, a clock of unknown unit, and whatever stands as a warning below a table'
complete -c trapline -n "__fish_trapline_using_subcommand bench; and __fish_seen_subcommand_from explain" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c trapline -n "__fish_trapline_using_subcommand bench; and __fish_seen_subcommand_from help" -f -a "ipi" -d 'Measure IPIs: from one CPU to another on its core, on its node, on another node, and to all; to busy and to idle CPUs'
complete -c trapline -n "__fish_trapline_using_subcommand bench; and __fish_seen_subcommand_from help" -f -a "wake" -d 'Measure wake-ups of a thread on another CPU, which is idle, long idle or busy: futex, pipe, eventfd'
complete -c trapline -n "__fish_trapline_using_subcommand bench; and __fish_seen_subcommand_from help" -f -a "clock" -d 'Measure what reading each clock costs'
complete -c trapline -n "__fish_trapline_using_subcommand bench; and __fish_seen_subcommand_from help" -f -a "timer" -d 'Measure how late timers fire, on an idle CPU and on a busy one'
complete -c trapline -n "__fish_trapline_using_subcommand bench; and __fish_seen_subcommand_from help" -f -a "exits" -d 'Measure CPUID, reads of I/O ports and of registers in memory: in a guest, each is an exit'
complete -c trapline -n "__fish_trapline_using_subcommand bench; and __fish_seen_subcommand_from help" -f -a "net" -d 'Measure round trips of small messages over TCP and UDP, to a peer that the same command starts'
complete -c trapline -n "__fish_trapline_using_subcommand bench; and __fish_seen_subcommand_from help" -f -a "disk" -d 'Measure requests of 4 KiB to a disk, one at a time'
complete -c trapline -n "__fish_trapline_using_subcommand bench; and __fish_seen_subcommand_from help" -f -a "explain" -d 'Find out what the slowest iterations of a result were, by a recording that was made meanwhile'
complete -c trapline -n "__fish_trapline_using_subcommand bench; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c trapline -n "__fish_trapline_using_subcommand export" -s i -l input -d 'The same as REC, as perf has it. May be repeated. Without any REC, the newest recording in this folder is read: trapline-N, which \'trapline record\' makes, perf.data.guest, perf.data or trace.dat' -r -F
complete -c trapline -n "__fish_trapline_using_subcommand export" -l guest -d 'A recording of a guest, as GUEST, with the name, UUID or process of the VM whose guest it is. May be repeated' -r
complete -c trapline -n "__fish_trapline_using_subcommand export" -s o -l output -d 'Write to FILE; - is standard output. The end of the name says what is written: .pftrace or .perfetto-trace, .csv, .md, .json. With --as ctf and --as parquet it is a folder' -r -F
complete -c trapline -n "__fish_trapline_using_subcommand export" -l as -d 'Write this kind of file, whatever the name is' -r -f -a "pftrace\t'For Perfetto'
csv\t'For spreadsheets'
md\t'For tickets'
json\t'For scripts'
ctf\t'A folder for Babeltrace and Trace Compass'
parquet\t'A folder of many recordings, for SQL'"
complete -c trapline -n "__fish_trapline_using_subcommand export" -l table -d 'Write the rows of this table (CSV). The default is spans' -r -f -a "spans\t'Spans of the vCPUs\' states'
exits\t'Exits'
instances\t'Instances of paths'
events\t'Events'"
complete -c trapline -n "__fish_trapline_using_subcommand export" -l path -d 'Export instances of this built-in path, or of the path that FILE describes. Without it, those of all built-in paths but those that are for --path only. May be repeated' -r -f -a "halt-wake\t''
irqfd\t''
ipi\t''
timer\t''
kick\t''
user-exit\t''
forwarding\t''
packet\t''
disk\t''
guest-ipi\t''
device-irq\t''
page-fault\t''"
complete -c trapline -n "__fish_trapline_using_subcommand export" -l mtree -d 'Read where the VM\'s devices are from FILE, the output of \'info mtree\' in QEMU\'s monitor. It names I/O ports and MMIO addresses. Without it, names come from such a text in --facts, else from the defaults of QEMU\'s machines' -r -F
complete -c trapline -n "__fish_trapline_using_subcommand export" -l host -d 'The host\'s name. Without it, that of the recording' -r
complete -c trapline -n "__fish_trapline_using_subcommand export" -l day -d 'The day on which the recording began, as 2026-11-23, where the recording does not say it or says it wrong' -r
complete -c trapline -n "__fish_trapline_using_subcommand export" -l label -d 'Store this with the recording: role=NAME is what the host is for, by which it has its peers. May be repeated' -r
complete -c trapline -n "__fish_trapline_using_subcommand export" -l mask -d 'Mask names of hosts, VMs, tasks, files and what a guest printed, by the secret that this file has' -r -F
complete -c trapline -n "__fish_trapline_using_subcommand export" -l format -d 'Print a table for people, JSON, or comma-separated values' -r -f -a "table\t'For people'
json\t'For programs'
csv\t'For spreadsheets'"
complete -c trapline -n "__fish_trapline_using_subcommand export" -l formats -d 'For a perf.data without event formats (cut off while it was recorded): take them from another recording of the same kernel, or from a copy of its /sys/kernel/tracing/events' -r -F
complete -c trapline -n "__fish_trapline_using_subcommand export" -l facts -d 'Read from FILE what the recording does not say about its host: the JSON of \'trapline facts\' (everything but devices), the text of \'ps -eLo pid,tid,comm,args\' (threads and VMs), of \'info cpus\' in QEMU\'s monitor or query-cpus-fast in QMP (vCPUs), or of \'info mtree\' (devices). Where the recording has a name itself, that name is used. - is standard input. May be repeated' -r -F
complete -c trapline -n "__fish_trapline_using_subcommand export" -l spool-limit -d 'Unpack at most SIZE (500M, 2T) of a recording that is compressed or comes through a pipe; a longer one is an error. The first 16 MiB are kept in memory, longer ones in a temporary file below TMPDIR. The default is 64G, and less for a compressed file that expands more than recordings do' -r
complete -c trapline -n "__fish_trapline_using_subcommand export" -l max-memory -d 'Take at most SIZE (500M, 4G) of memory; files that are mapped do not count. Where a recording has more threads than fit, those that had the least time become sums called "others". The default is half of what is available, of a container of what its limit leaves' -r
complete -c trapline -n "__fish_trapline_using_subcommand export" -l threads -d 'Use N threads, 1 to 64; the result is the same with any number. The default is one for each CPU, up to 4' -r
complete -c trapline -n "__fish_trapline_using_subcommand export" -l pid -d 'Only vCPUs of this process or thread (sched: tasks; events and info: events)' -r
complete -c trapline -n "__fish_trapline_using_subcommand export" -l vm -d 'Only the VM with this name, UUID, process id or process name (events and info: the events of its vCPUs\' threads)' -r
complete -c trapline -n "__fish_trapline_using_subcommand export" -l vcpu -d 'Only the vCPU with this number; without --vm, of each VM' -r
complete -c trapline -n "__fish_trapline_using_subcommand export" -l cpu -d 'Only events on these CPUs, for example 0-3,8' -r
complete -c trapline -n "__fish_trapline_using_subcommand export" -l time -d 'Only what happens from FROM to TO. Both are times as info and events print them: seconds, or whole numbers where the recording\'s clock counts ticks. Either may be left out' -r
complete -c trapline -n "__fish_trapline_using_subcommand export" -l color -d 'Colour what is printed for people: on a terminal (where NO_COLOR is not set, or CLICOLOR_FORCE is), always or never' -r -f -a "auto\t'On a terminal, unless NO_COLOR is set; elsewhere if CLICOLOR_FORCE is'
always\t'Always'
never\t'Never'"
complete -c trapline -n "__fish_trapline_using_subcommand export" -l sandbox -d 'Read files without what reading does not need: network, other programs, files but those of -o. As far as the kernel can (auto), the same and say what is in force (show), or the command ends where it cannot (required), or not (off)' -r -f -a "auto\t'As far as the kernel knows how to'
required\t'The command ends where the kernel has no seccomp, or no Landlock that keeps files from being written, truncated and run (Linux 6.2). What newer ones refuse besides is not required'
show\t'As far as the kernel knows how to, and what is in force is said on standard error'
off\t'Never'"
complete -c trapline -n "__fish_trapline_using_subcommand export" -l detail -d 'Store rows of single spans, exits and instances of paths too, which are as large as the recording'
complete -c trapline -n "__fish_trapline_using_subcommand export" -l json -d 'Short for --format json'
complete -c trapline -n "__fish_trapline_using_subcommand export" -l csv -d 'Short for --format csv'
complete -c trapline -n "__fish_trapline_using_subcommand export" -l strict -d 'End with status 3 where a doubt touches what is printed: losses, a cut, a clock of unknown unit, and whatever stands as a warning below a table'
complete -c trapline -n "__fish_trapline_using_subcommand export" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c trapline -n "__fish_trapline_using_subcommand sql" -s f -l file -d 'Read the question from FILE' -r -F
complete -c trapline -n "__fish_trapline_using_subcommand sql" -l question -d 'Ask question N of those that trapline brings along; 0 lists them' -r
complete -c trapline -n "__fish_trapline_using_subcommand sql" -l day -d 'The day that question N is about, as 2026-11-23. Without it, the store\'s last' -r
complete -c trapline -n "__fish_trapline_using_subcommand sql" -l before -d 'The day that it is held against. Without it, the last one before' -r
complete -c trapline -n "__fish_trapline_using_subcommand sql" -l limit -d 'Print at most N rows of a table for people' -r
complete -c trapline -n "__fish_trapline_using_subcommand sql" -l memory -d 'Let the engine hold at most SIZE MiB' -r
complete -c trapline -n "__fish_trapline_using_subcommand sql" -l threads -d 'Use N threads. The default is one for each CPU' -r
complete -c trapline -n "__fish_trapline_using_subcommand sql" -l format -d 'Print a table for people, JSON, or comma-separated values' -r -f -a "table\t'For people'
json\t'For programs'
csv\t'For spreadsheets'"
complete -c trapline -n "__fish_trapline_using_subcommand sql" -l color -d 'Colour what is printed for people: on a terminal (where NO_COLOR is not set, or CLICOLOR_FORCE is), always or never' -r -f -a "auto\t'On a terminal, unless NO_COLOR is set; elsewhere if CLICOLOR_FORCE is'
always\t'Always'
never\t'Never'"
complete -c trapline -n "__fish_trapline_using_subcommand sql" -l sandbox -d 'Read files without what reading does not need: network, other programs, files but those of -o. As far as the kernel can (auto), the same and say what is in force (show), or the command ends where it cannot (required), or not (off)' -r -f -a "auto\t'As far as the kernel knows how to'
required\t'The command ends where the kernel has no seccomp, or no Landlock that keeps files from being written, truncated and run (Linux 6.2). What newer ones refuse besides is not required'
show\t'As far as the kernel knows how to, and what is in force is said on standard error'
off\t'Never'"
complete -c trapline -n "__fish_trapline_using_subcommand sql" -l show -d 'Print the SQL of question N, for this store\'s days, and do not ask it: other engines take it too'
complete -c trapline -n "__fish_trapline_using_subcommand sql" -l tables -d 'List the tables with their columns, units and meaning'
complete -c trapline -n "__fish_trapline_using_subcommand sql" -l json -d 'Short for --format json'
complete -c trapline -n "__fish_trapline_using_subcommand sql" -l csv -d 'Short for --format csv'
complete -c trapline -n "__fish_trapline_using_subcommand sql" -l strict -d 'End with status 3 where a doubt touches what is printed: losses, a cut, a clock of unknown unit, and whatever stands as a warning below a table'
complete -c trapline -n "__fish_trapline_using_subcommand sql" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c trapline -n "__fish_trapline_using_subcommand fleet" -l day -d 'The day in question, as 2026-11-23. Without it, the store\'s last until today' -r
complete -c trapline -n "__fish_trapline_using_subcommand fleet" -l since -d 'Hold it against so many days before it alone, as 7d, or against the days from 2026-11-16 on. Without it, against all before' -r
complete -c trapline -n "__fish_trapline_using_subcommand fleet" -l peers -d 'Hosts are peers that have these in common: role, cpu_model, kernel, arch, cpus' -r -f -a "role\t''
cpu_model\t''
kernel\t''
arch\t''
cpus\t''"
complete -c trapline -n "__fish_trapline_using_subcommand fleet" -s o -l output -d 'Write a page with everything, whose tables sort by any column, to FILE (.html)' -r -F
complete -c trapline -n "__fish_trapline_using_subcommand fleet" -l keep-detail -d 'With --compact, remove single spans, exits and instances of days more than so many before the last, as 90d' -r
complete -c trapline -n "__fish_trapline_using_subcommand fleet" -l format -d 'Print a table for people, JSON, or comma-separated values' -r -f -a "table\t'For people'
json\t'For programs'
csv\t'For spreadsheets'"
complete -c trapline -n "__fish_trapline_using_subcommand fleet" -l color -d 'Colour what is printed for people: on a terminal (where NO_COLOR is not set, or CLICOLOR_FORCE is), always or never' -r -f -a "auto\t'On a terminal, unless NO_COLOR is set; elsewhere if CLICOLOR_FORCE is'
always\t'Always'
never\t'Never'"
complete -c trapline -n "__fish_trapline_using_subcommand fleet" -l sandbox -d 'Read files without what reading does not need: network, other programs, files but those of -o. As far as the kernel can (auto), the same and say what is in force (show), or the command ends where it cannot (required), or not (off)' -r -f -a "auto\t'As far as the kernel knows how to'
required\t'The command ends where the kernel has no seccomp, or no Landlock that keeps files from being written, truncated and run (Linux 6.2). What newer ones refuse besides is not required'
show\t'As far as the kernel knows how to, and what is in force is said on standard error'
off\t'Never'"
complete -c trapline -n "__fish_trapline_using_subcommand fleet" -l check -d 'Look at every file of the store instead, and say what is wrong. The exit status is 1 where something is'
complete -c trapline -n "__fish_trapline_using_subcommand fleet" -l compact -d 'Make one file of each table and day, which engines read faster. Nothing else may change the store meanwhile: who writes waits'
complete -c trapline -n "__fish_trapline_using_subcommand fleet" -l json -d 'Short for --format json'
complete -c trapline -n "__fish_trapline_using_subcommand fleet" -l csv -d 'Short for --format csv'
complete -c trapline -n "__fish_trapline_using_subcommand fleet" -l strict -d 'End with status 3 where a doubt touches what is printed: losses, a cut, a clock of unknown unit, and whatever stands as a warning below a table'
complete -c trapline -n "__fish_trapline_using_subcommand fleet" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c trapline -n "__fish_trapline_using_subcommand top" -l interval -d 'Count for so long: 500ms, 1s, 10s' -r
complete -c trapline -n "__fish_trapline_using_subcommand top" -l vm -d 'Show the VM of this name alone' -r
complete -c trapline -n "__fish_trapline_using_subcommand top" -l pid -d 'Show the VM of this process alone' -r
complete -c trapline -n "__fish_trapline_using_subcommand top" -l by -d 'Show exits of each vCPU, or of all vCPUs of a VM together' -r -f -a "vcpu\t'One vCPU'
vm\t'All vCPUs of a VM'"
complete -c trapline -n "__fish_trapline_using_subcommand top" -l mtree -d 'Read where the VM\'s devices are from FILE, the output of \'info mtree\' in QEMU\'s monitor. It names I/O ports and MMIO addresses. Without it, names come from the defaults of QEMU\'s machines' -r -F
complete -c trapline -n "__fish_trapline_using_subcommand top" -l limit -d 'With --once: show at most N rows of each table' -r
complete -c trapline -n "__fish_trapline_using_subcommand top" -l prometheus -d 'Show nothing, and serve what is counted since the beginning at http://ADDR/metrics, as Prometheus reads it. ADDR is a port of this machine alone (9435), an address and a port (0.0.0.0:9435), a socket in the file system (unix:/run/trapline.sock, which is made, with mode 0660), or systemd: the sockets of a .socket unit that starts this (LISTEN_FDS). Its own health is among the metrics' -r
complete -c trapline -n "__fish_trapline_using_subcommand top" -l format -d 'With --once: print tables for people, JSON, or comma-separated values: of exits and accesses, with --counters of these.' -r -f -a "table\t'For people'
json\t'For programs'
csv\t'For spreadsheets'"
complete -c trapline -n "__fish_trapline_using_subcommand top" -l color -d 'Colour what is printed for people: on a terminal (where NO_COLOR is not set, or CLICOLOR_FORCE is), always or never' -r -f -a "auto\t'On a terminal, unless NO_COLOR is set; elsewhere if CLICOLOR_FORCE is'
always\t'Always'
never\t'Never'"
complete -c trapline -n "__fish_trapline_using_subcommand top" -l sandbox -d 'Read files without what reading does not need: network, other programs, files but those of -o. As far as the kernel can (auto), the same and say what is in force (show), or the command ends where it cannot (required), or not (off)' -r -f -a "auto\t'As far as the kernel knows how to'
required\t'The command ends where the kernel has no seccomp, or no Landlock that keeps files from being written, truncated and run (Linux 6.2). What newer ones refuse besides is not required'
show\t'As far as the kernel knows how to, and what is in force is said on standard error'
off\t'Never'"
complete -c trapline -n "__fish_trapline_using_subcommand top" -l once -d 'Count for one interval, print it, and end'
complete -c trapline -n "__fish_trapline_using_subcommand top" -l events -d 'Count in this program, out of events that the kernel writes to rings, even where BPF programs can count in the kernel. The numbers are the same, at a higher cost. Where BPF is not allowed, that is done without being asked for'
complete -c trapline -n "__fish_trapline_using_subcommand top" -l counters -d 'Count cycles, instructions and cache misses of each vCPU as well, of its guest apart from the host, and its page faults, as \'trapline record --counters\' does. Reading them interrupts each vCPU that runs, up to three times an interval, and they take six of the processor\'s counters'
complete -c trapline -n "__fish_trapline_using_subcommand top" -l json -d 'Short for --format json'
complete -c trapline -n "__fish_trapline_using_subcommand top" -l csv -d 'Short for --format csv'
complete -c trapline -n "__fish_trapline_using_subcommand top" -l serves -d 'Serve what the process counts at the other end of standard input. The exporter starts itself so'
complete -c trapline -n "__fish_trapline_using_subcommand top" -l strict -d 'End with status 3 where a doubt touches what is printed: losses, a cut, a clock of unknown unit, and whatever stands as a warning below a table'
complete -c trapline -n "__fish_trapline_using_subcommand top" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c trapline -n "__fish_trapline_using_subcommand watch" -l output-dir -d 'Write incidents to this folder, which is made if it is not there: a folder for each incident, and incidents.jsonl, a line for each. Nobody else may write to it' -r -F
complete -c trapline -n "__fish_trapline_using_subcommand watch" -l interval -d 'Look at what was counted so often: 1s, 2s, 10s' -r
complete -c trapline -n "__fish_trapline_using_subcommand watch" -l limit -d 'Set the limit of a condition, as steal=10% of a CPU\'s time or short-halts=5000 a second; CONDITION=off does not look at it. --dry-run lists the conditions with their limits. May be repeated' -r
complete -c trapline -n "__fish_trapline_using_subcommand watch" -l when -d 'Record when an instance of a path took longer, too, as \'irqfd > 10ms\'. PATH is one of \'trapline paths --help\', or a file. May be repeated. All events are then looked at by this process as they come, which costs more' -r
complete -c trapline -n "__fish_trapline_using_subcommand watch" -l keep -d 'Keep the last SECONDS before an incident' -r
complete -c trapline -n "__fish_trapline_using_subcommand watch" -l after -d 'Record for so many SECONDS after an incident began' -r
complete -c trapline -n "__fish_trapline_using_subcommand watch" -l memory -d 'Take this much memory for what is kept at most. A quarter of --disk is never gone beyond' -r
complete -c trapline -n "__fish_trapline_using_subcommand watch" -l disk -d 'Let all incidents together take so much of the disk at most: the oldest are removed for new ones' -r
complete -c trapline -n "__fish_trapline_using_subcommand watch" -l max-incidents -d 'Record so many incidents in an hour at most; others are a line each' -r
complete -c trapline -n "__fish_trapline_using_subcommand watch" -l quiet-intervals -d 'Take an incident for over after so many intervals without a symptom' -r
complete -c trapline -n "__fish_trapline_using_subcommand watch" -l cool-down -d 'Take what comes back so many SECONDS after an incident was over for the same incident, which is not recorded again' -r
complete -c trapline -n "__fish_trapline_using_subcommand watch" -l for -d 'End after so many seconds. Without it, Ctrl-C or SIGTERM ends it' -r
complete -c trapline -n "__fish_trapline_using_subcommand watch" -l budget -d 'Let recording take so much of a CPU\'s time at most: where it would take more, less is recorded' -r
complete -c trapline -n "__fish_trapline_using_subcommand watch" -l store -d 'Write the sums of each recording into the store DIR, as \'trapline export --as parquet\' does, for \'trapline fleet\' and \'trapline sql\'' -r -F
complete -c trapline -n "__fish_trapline_using_subcommand watch" -l label -d 'With --store: store this with each recording, as role=NAME, by which the host has its peers. May be repeated' -r
complete -c trapline -n "__fish_trapline_using_subcommand watch" -l mask -d 'With --store: mask names in it by the secret that this file has' -r -F
complete -c trapline -n "__fish_trapline_using_subcommand watch" -l color -d 'Colour what is printed for people: on a terminal (where NO_COLOR is not set, or CLICOLOR_FORCE is), always or never' -r -f -a "auto\t'On a terminal, unless NO_COLOR is set; elsewhere if CLICOLOR_FORCE is'
always\t'Always'
never\t'Never'"
complete -c trapline -n "__fish_trapline_using_subcommand watch" -l sandbox -d 'Read files without what reading does not need: network, other programs, files but those of -o. As far as the kernel can (auto), the same and say what is in force (show), or the command ends where it cannot (required), or not (off)' -r -f -a "auto\t'As far as the kernel knows how to'
required\t'The command ends where the kernel has no seccomp, or no Landlock that keeps files from being written, truncated and run (Linux 6.2). What newer ones refuse besides is not required'
show\t'As far as the kernel knows how to, and what is in force is said on standard error'
off\t'Never'"
complete -c trapline -n "__fish_trapline_using_subcommand watch" -l events -d 'Count in this program, out of events that the kernel writes to rings, as \'trapline top --events\' does'
complete -c trapline -n "__fish_trapline_using_subcommand watch" -l dry-run -d 'Watch nothing: say what is missing here, what would be opened, what that costs, and which conditions there are'
complete -c trapline -n "__fish_trapline_using_subcommand watch" -l strict -d 'End with status 3 where a doubt touches what is printed: losses, a cut, a clock of unknown unit, and whatever stands as a warning below a table'
complete -c trapline -n "__fish_trapline_using_subcommand watch" -s h -l help -d 'Print help'
complete -c trapline -n "__fish_trapline_using_subcommand redact" -s o -l output -d 'Write the recording to this file; without it to FILE.redacted' -r -F
complete -c trapline -n "__fish_trapline_using_subcommand redact" -l format -d 'Print a table for people, JSON, or comma-separated values' -r -f -a "table\t'For people'
json\t'For programs'
csv\t'For spreadsheets'"
complete -c trapline -n "__fish_trapline_using_subcommand redact" -l color -d 'Colour what is printed for people: on a terminal (where NO_COLOR is not set, or CLICOLOR_FORCE is), always or never' -r -f -a "auto\t'On a terminal, unless NO_COLOR is set; elsewhere if CLICOLOR_FORCE is'
always\t'Always'
never\t'Never'"
complete -c trapline -n "__fish_trapline_using_subcommand redact" -l sandbox -d 'Read files without what reading does not need: network, other programs, files but those of -o. As far as the kernel can (auto), the same and say what is in force (show), or the command ends where it cannot (required), or not (off)' -r -f -a "auto\t'As far as the kernel knows how to'
required\t'The command ends where the kernel has no seccomp, or no Landlock that keeps files from being written, truncated and run (Linux 6.2). What newer ones refuse besides is not required'
show\t'As far as the kernel knows how to, and what is in force is said on standard error'
off\t'Never'"
complete -c trapline -n "__fish_trapline_using_subcommand redact" -l json -d 'Short for --format json'
complete -c trapline -n "__fish_trapline_using_subcommand redact" -l csv -d 'Short for --format csv'
complete -c trapline -n "__fish_trapline_using_subcommand redact" -l strict -d 'End with status 3 where a doubt touches what is printed: losses, a cut, a clock of unknown unit, and whatever stands as a warning below a table'
complete -c trapline -n "__fish_trapline_using_subcommand redact" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c trapline -n "__fish_trapline_using_subcommand salvage" -s o -l output -d 'Write the whole recording to this file; without it to FILE.salvaged' -r -F
complete -c trapline -n "__fish_trapline_using_subcommand salvage" -l formats -d 'Take the formats of events from another perf.data of the same kernel: those of a perf.data that is cut off stood behind its records' -r -F
complete -c trapline -n "__fish_trapline_using_subcommand salvage" -l format -d 'Print a table for people, JSON, or comma-separated values' -r -f -a "table\t'For people'
json\t'For programs'
csv\t'For spreadsheets'"
complete -c trapline -n "__fish_trapline_using_subcommand salvage" -l color -d 'Colour what is printed for people: on a terminal (where NO_COLOR is not set, or CLICOLOR_FORCE is), always or never' -r -f -a "auto\t'On a terminal, unless NO_COLOR is set; elsewhere if CLICOLOR_FORCE is'
always\t'Always'
never\t'Never'"
complete -c trapline -n "__fish_trapline_using_subcommand salvage" -l sandbox -d 'Read files without what reading does not need: network, other programs, files but those of -o. As far as the kernel can (auto), the same and say what is in force (show), or the command ends where it cannot (required), or not (off)' -r -f -a "auto\t'As far as the kernel knows how to'
required\t'The command ends where the kernel has no seccomp, or no Landlock that keeps files from being written, truncated and run (Linux 6.2). What newer ones refuse besides is not required'
show\t'As far as the kernel knows how to, and what is in force is said on standard error'
off\t'Never'"
complete -c trapline -n "__fish_trapline_using_subcommand salvage" -l json -d 'Short for --format json'
complete -c trapline -n "__fish_trapline_using_subcommand salvage" -l csv -d 'Short for --format csv'
complete -c trapline -n "__fish_trapline_using_subcommand salvage" -l strict -d 'End with status 3 where a doubt touches what is printed: losses, a cut, a clock of unknown unit, and whatever stands as a warning below a table'
complete -c trapline -n "__fish_trapline_using_subcommand salvage" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c trapline -n "__fish_trapline_using_subcommand facts" -l root -d 'Read proc, sys and boot below DIR: those of another host, mounted in a container or copied by sosreport' -r -F
complete -c trapline -n "__fish_trapline_using_subcommand facts" -l format -d 'Print a table for people, JSON, or comma-separated values' -r -f -a "table\t'For people'
json\t'For programs'
csv\t'For spreadsheets'"
complete -c trapline -n "__fish_trapline_using_subcommand facts" -l color -d 'Colour what is printed for people: on a terminal (where NO_COLOR is not set, or CLICOLOR_FORCE is), always or never' -r -f -a "auto\t'On a terminal, unless NO_COLOR is set; elsewhere if CLICOLOR_FORCE is'
always\t'Always'
never\t'Never'"
complete -c trapline -n "__fish_trapline_using_subcommand facts" -l sandbox -d 'Read files without what reading does not need: network, other programs, files but those of -o. As far as the kernel can (auto), the same and say what is in force (show), or the command ends where it cannot (required), or not (off)' -r -f -a "auto\t'As far as the kernel knows how to'
required\t'The command ends where the kernel has no seccomp, or no Landlock that keeps files from being written, truncated and run (Linux 6.2). What newer ones refuse besides is not required'
show\t'As far as the kernel knows how to, and what is in force is said on standard error'
off\t'Never'"
complete -c trapline -n "__fish_trapline_using_subcommand facts" -l json -d 'Short for --format json'
complete -c trapline -n "__fish_trapline_using_subcommand facts" -l csv -d 'Short for --format csv'
complete -c trapline -n "__fish_trapline_using_subcommand facts" -l wide -d 'Show lists in full'
complete -c trapline -n "__fish_trapline_using_subcommand facts" -l strict -d 'End with status 3 where a doubt touches what is printed: losses, a cut, a clock of unknown unit, and whatever stands as a warning below a table'
complete -c trapline -n "__fish_trapline_using_subcommand facts" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c trapline -n "__fish_trapline_using_subcommand help; and not __fish_seen_subcommand_from why report diagnose compare rules info events exits explain vcpus irqs virtqueues counters paths flame sched record agent overhead bench export sql fleet top watch redact salvage facts help" -f -a "why" -d 'Find out on this host why a VM is slow: count, record what that asks for, report, and say what to change'
complete -c trapline -n "__fish_trapline_using_subcommand help; and not __fish_seen_subcommand_from why report diagnose compare rules info events exits explain vcpus irqs virtqueues counters paths flame sched record agent overhead bench export sql fleet top watch redact salvage facts help" -f -a "report" -d 'Show one screen about a recording: what is wrong, in a sentence, and what that rests on'
complete -c trapline -n "__fish_trapline_using_subcommand help; and not __fish_seen_subcommand_from why report diagnose compare rules info events exits explain vcpus irqs virtqueues counters paths flame sched record agent overhead bench export sql fleet top watch redact salvage facts help" -f -a "diagnose" -d 'Find out why a VM is slow and what to change: findings with evidence, cause, remedies and their price'
complete -c trapline -n "__fish_trapline_using_subcommand help; and not __fish_seen_subcommand_from why report diagnose compare rules info events exits explain vcpus irqs virtqueues counters paths flame sched record agent overhead bench export sql fleet top watch redact salvage facts help" -f -a "compare" -d 'Show what changed between two recordings or two groups of them, largest effect on time first'
complete -c trapline -n "__fish_trapline_using_subcommand help; and not __fish_seen_subcommand_from why report diagnose compare rules info events exits explain vcpus irqs virtqueues counters paths flame sched record agent overhead bench export sql fleet top watch redact salvage facts help" -f -a "rules" -d 'List the causes that diagnose looks for, or explain them'
complete -c trapline -n "__fish_trapline_using_subcommand help; and not __fish_seen_subcommand_from why report diagnose compare rules info events exits explain vcpus irqs virtqueues counters paths flame sched record agent overhead bench export sql fleet top watch redact salvage facts help" -f -a "info" -d 'Show what a recording holds: format, machine, clock, events, VMs and vCPUs, lost events'
complete -c trapline -n "__fish_trapline_using_subcommand help; and not __fish_seen_subcommand_from why report diagnose compare rules info events exits explain vcpus irqs virtqueues counters paths flame sched record agent overhead bench export sql fleet top watch redact salvage facts help" -f -a "events" -d 'Print the events in time order, as perf script or trace-cmd report -N prints them'
complete -c trapline -n "__fish_trapline_using_subcommand help; and not __fish_seen_subcommand_from why report diagnose compare rules info events exits explain vcpus irqs virtqueues counters paths flame sched record agent overhead bench export sql fleet top watch redact salvage facts help" -f -a "exits" -d 'Count exits and their time by reason, port, address or register'
complete -c trapline -n "__fish_trapline_using_subcommand help; and not __fish_seen_subcommand_from why report diagnose compare rules info events exits explain vcpus irqs virtqueues counters paths flame sched record agent overhead bench export sql fleet top watch redact salvage facts help" -f -a "explain" -d 'Print the events that a number of a table, or a finding, is made of'
complete -c trapline -n "__fish_trapline_using_subcommand help; and not __fish_seen_subcommand_from why report diagnose compare rules info events exits explain vcpus irqs virtqueues counters paths flame sched record agent overhead bench export sql fleet top watch redact salvage facts help" -f -a "vcpus" -d 'Show where each vCPU\'s time went: guest, KVM, VMM, halt polling, halted, waiting for a CPU'
complete -c trapline -n "__fish_trapline_using_subcommand help; and not __fish_seen_subcommand_from why report diagnose compare rules info events exits explain vcpus irqs virtqueues counters paths flame sched record agent overhead bench export sql fleet top watch redact salvage facts help" -f -a "irqs" -d 'Count the interrupts of each vCPU by vector (accepted, posted, injected), on arm64 by INTID'
complete -c trapline -n "__fish_trapline_using_subcommand help; and not __fish_seen_subcommand_from why report diagnose compare rules info events exits explain vcpus irqs virtqueues counters paths flame sched record agent overhead bench export sql fleet top watch redact salvage facts help" -f -a "virtqueues" -d 'Count what went through virtqueues: buffers, notifications, interrupts, frames and bytes by device and queue'
complete -c trapline -n "__fish_trapline_using_subcommand help; and not __fish_seen_subcommand_from why report diagnose compare rules info events exits explain vcpus irqs virtqueues counters paths flame sched record agent overhead bench export sql fleet top watch redact salvage facts help" -f -a "counters" -d 'Show cycles, instructions per cycle and cache misses of each vCPU, in its guest and in the host'
complete -c trapline -n "__fish_trapline_using_subcommand help; and not __fish_seen_subcommand_from why report diagnose compare rules info events exits explain vcpus irqs virtqueues counters paths flame sched record agent overhead bench export sql fleet top watch redact salvage facts help" -f -a "paths" -d 'Show latency paths (interrupts, wake-ups, I/O) stage by stage, and what slow instances have in common'
complete -c trapline -n "__fish_trapline_using_subcommand help; and not __fish_seen_subcommand_from why report diagnose compare rules info events exits explain vcpus irqs virtqueues counters paths flame sched record agent overhead bench export sql fleet top watch redact salvage facts help" -f -a "flame" -d 'Show where CPUs were when perf sampled them, as a table, folded stacks, a picture (SVG, HTML) or JSON'
complete -c trapline -n "__fish_trapline_using_subcommand help; and not __fish_seen_subcommand_from why report diagnose compare rules info events exits explain vcpus irqs virtqueues counters paths flame sched record agent overhead bench export sql fleet top watch redact salvage facts help" -f -a "sched" -d 'Show scheduling latency by task or CPU: delays, preemption, wakers, functions of kworkers'
complete -c trapline -n "__fish_trapline_using_subcommand help; and not __fish_seen_subcommand_from why report diagnose compare rules info events exits explain vcpus irqs virtqueues counters paths flame sched record agent overhead bench export sql fleet top watch redact salvage facts help" -f -a "record" -d 'Record a host\'s events with little disturbance, with its settings beside them'
complete -c trapline -n "__fish_trapline_using_subcommand help; and not __fish_seen_subcommand_from why report diagnose compare rules info events exits explain vcpus irqs virtqueues counters paths flame sched record agent overhead bench export sql fleet top watch redact salvage facts help" -f -a "agent" -d 'Record a guest\'s side from within, on its own or for the host that records it'
complete -c trapline -n "__fish_trapline_using_subcommand help; and not __fish_seen_subcommand_from why report diagnose compare rules info events exits explain vcpus irqs virtqueues counters paths flame sched record agent overhead bench export sql fleet top watch redact salvage facts help" -f -a "overhead" -d 'Measure what recording an event costs on this machine, by CPU'
complete -c trapline -n "__fish_trapline_using_subcommand help; and not __fish_seen_subcommand_from why report diagnose compare rules info events exits explain vcpus irqs virtqueues counters paths flame sched record agent overhead bench export sql fleet top watch redact salvage facts help" -f -a "bench" -d 'Measure what IPIs, wake-ups, clocks, timers, exits, a network and a disk cost here, in a guest or on a host'
complete -c trapline -n "__fish_trapline_using_subcommand help; and not __fish_seen_subcommand_from why report diagnose compare rules info events exits explain vcpus irqs virtqueues counters paths flame sched record agent overhead bench export sql fleet top watch redact salvage facts help" -f -a "export" -d 'Write a recording as a file for Perfetto, spreadsheets, tickets or scripts'
complete -c trapline -n "__fish_trapline_using_subcommand help; and not __fish_seen_subcommand_from why report diagnose compare rules info events exits explain vcpus irqs virtqueues counters paths flame sched record agent overhead bench export sql fleet top watch redact salvage facts help" -f -a "sql" -d 'Ask in SQL: the tables of a recording, or of a folder that holds those of many hosts and days'
complete -c trapline -n "__fish_trapline_using_subcommand help; and not __fish_seen_subcommand_from why report diagnose compare rules info events exits explain vcpus irqs virtqueues counters paths flame sched record agent overhead bench export sql fleet top watch redact salvage facts help" -f -a "fleet" -d 'Show which of many hosts to look at: problems, news, shifts, outliers, what the sick share, what to open'
complete -c trapline -n "__fish_trapline_using_subcommand help; and not __fish_seen_subcommand_from why report diagnose compare rules info events exits explain vcpus irqs virtqueues counters paths flame sched record agent overhead bench export sql fleet top watch redact salvage facts help" -f -a "top" -d 'Show what this host\'s vCPUs do now: exits, states, waits for a CPU and behind whom, counted in the kernel'
complete -c trapline -n "__fish_trapline_using_subcommand help; and not __fish_seen_subcommand_from why report diagnose compare rules info events exits explain vcpus irqs virtqueues counters paths flame sched record agent overhead bench export sql fleet top watch redact salvage facts help" -f -a "watch" -d 'Watch this host\'s VMs for as long as it runs: count, and record and report what goes wrong, within a budget'
complete -c trapline -n "__fish_trapline_using_subcommand help; and not __fish_seen_subcommand_from why report diagnose compare rules info events exits explain vcpus irqs virtqueues counters paths flame sched record agent overhead bench export sql fleet top watch redact salvage facts help" -f -a "redact" -d 'Make a recording fit for a public ticket: the same numbers, without names, paths and command lines'
complete -c trapline -n "__fish_trapline_using_subcommand help; and not __fish_seen_subcommand_from why report diagnose compare rules info events exits explain vcpus irqs virtqueues counters paths flame sched record agent overhead bench export sql fleet top watch redact salvage facts help" -f -a "salvage" -d 'Make a recording that is cut off or damaged one that perf and trace-cmd open, and say what was lost'
complete -c trapline -n "__fish_trapline_using_subcommand help; and not __fish_seen_subcommand_from why report diagnose compare rules info events exits explain vcpus irqs virtqueues counters paths flame sched record agent overhead bench export sql fleet top watch redact salvage facts help" -f -a "facts" -d 'Show this host\'s CPUs, clocks, settings and KVM parameters, and its VMs with their pinning'
complete -c trapline -n "__fish_trapline_using_subcommand help; and not __fish_seen_subcommand_from why report diagnose compare rules info events exits explain vcpus irqs virtqueues counters paths flame sched record agent overhead bench export sql fleet top watch redact salvage facts help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c trapline -n "__fish_trapline_using_subcommand help; and __fish_seen_subcommand_from bench" -f -a "ipi" -d 'Measure IPIs: from one CPU to another on its core, on its node, on another node, and to all; to busy and to idle CPUs'
complete -c trapline -n "__fish_trapline_using_subcommand help; and __fish_seen_subcommand_from bench" -f -a "wake" -d 'Measure wake-ups of a thread on another CPU, which is idle, long idle or busy: futex, pipe, eventfd'
complete -c trapline -n "__fish_trapline_using_subcommand help; and __fish_seen_subcommand_from bench" -f -a "clock" -d 'Measure what reading each clock costs'
complete -c trapline -n "__fish_trapline_using_subcommand help; and __fish_seen_subcommand_from bench" -f -a "timer" -d 'Measure how late timers fire, on an idle CPU and on a busy one'
complete -c trapline -n "__fish_trapline_using_subcommand help; and __fish_seen_subcommand_from bench" -f -a "exits" -d 'Measure CPUID, reads of I/O ports and of registers in memory: in a guest, each is an exit'
complete -c trapline -n "__fish_trapline_using_subcommand help; and __fish_seen_subcommand_from bench" -f -a "net" -d 'Measure round trips of small messages over TCP and UDP, to a peer that the same command starts'
complete -c trapline -n "__fish_trapline_using_subcommand help; and __fish_seen_subcommand_from bench" -f -a "disk" -d 'Measure requests of 4 KiB to a disk, one at a time'
complete -c trapline -n "__fish_trapline_using_subcommand help; and __fish_seen_subcommand_from bench" -f -a "explain" -d 'Find out what the slowest iterations of a result were, by a recording that was made meanwhile'
