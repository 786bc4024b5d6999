//! Tickets of any text: each line is part of one thing at most, and all lines are the text's.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let ticket = ticket::read(data);
    let lines = 1 + data.iter().filter(|b| matches!(**b, b'\n' | b'\r')).count() as u64;
    for part in &ticket.parts {
        assert!(part.first_line >= 1 && part.first_line <= part.last_line);
        assert!(part.last_line <= lines);
    }
    // A line may be several tables, pasted as one.
    let apart = |pair: &[ticket::TicketPart]| pair[0].last_line <= pair[1].first_line;
    assert!(ticket.parts.windows(2).all(apart));
    for part in &ticket.parts {
        let _ = ticket.scores_before(part.first_line);
    }
    let _ = ticket::named_commands(data);
});
