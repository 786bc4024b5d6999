//! Any bytes are cut without harm, and lines stay in the text.

use proptest::prelude::*;
use ticket::read;

/// What texts are made of.
const PIECES: [&str; 12] = [
    "<domain type='kvm'>\n",
    "<name>a</name></domain>\n",
    "</domain>\n",
    "qemu-kvm-12 [001]  444.000100: kvm_exit: reason HLT rip 0x1 info 0 0\n",
    "a-1 [002] 3.000100: sched_switch: a:1 [120] S ==> b:2 [120]\n",
    "Analyze events for all VMs, all VCPUs:\n",
    "  HLT   10   100.00%   100.00%   1.00us  100.00us  50.00us ( +-   3.00% )\n",
    "* CPU #0: thread_id=1700\n",
    "> quoted\r\n",
    "```\n",
    "qemu-system-x86_64 -m 4 -smp 2 \\\n",
    "=> kvm_vcpu_kick\r",
];

proptest! {
    #[test]
    fn pieces_are_cut(picks in prop::collection::vec(0usize..PIECES.len(), 0..40)) {
        let text: String = picks.iter().map(|at| PIECES[*at]).collect();
        let ticket = read(text.as_bytes());
        let lines = text.split(['\n', '\r']).count() as u64;
        for part in &ticket.parts {
            prop_assert!(part.first_line >= 1 && part.first_line <= part.last_line);
            prop_assert!(part.last_line <= lines);
        }
        // No line is part of two things.
        for pair in ticket.parts.windows(2) {
            prop_assert!(pair[0].last_line < pair[1].first_line, "{:?}", ticket.parts);
        }
    }

    #[test]
    fn bytes_are_cut(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let _ = read(&bytes);
    }
}
