//! What attacks are drawn from: numbers, words and sizes that nobody means well with.

use fixtures::random::Random;

/// Draws what one attack is made of; the same number makes the same attack in every run.
#[derive(Debug)]
pub(super) struct Draw {
    random: Random,
    /// Of how many choices one is absurd; 0 where none is.
    pub one_in: u64,
}

impl Draw {
    pub(super) fn new(seed: u64) -> Draw {
        let mut draw = Draw {
            random: Random(seed),
            one_in: 0,
        };
        // Mostly a few: where everything is absurd nothing gets far.
        draw.one_in = draw.of(&[0, 200, 60, 20, 8, 3]);
        draw
    }

    /// Returns a number below `end`; 0 where there is none.
    pub(super) fn below(&mut self, end: usize) -> usize {
        self.random.below((end as u64).max(1)) as usize
    }

    /// Returns any number.
    pub(super) fn any(&mut self) -> u64 {
        self.random.next_u64()
    }

    /// Returns whether one choice of so many falls on this.
    pub(super) fn once_in(&mut self, choices: usize) -> bool {
        self.below(choices) == 0
    }

    /// Returns whether what comes next is absurd.
    pub(super) fn absurd(&mut self) -> bool {
        self.one_in > 0 && self.random.below(self.one_in) == 0
    }

    /// Returns one of several.
    pub(super) fn of<T: Clone>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())].clone()
    }

    /// Returns a number at an edge of some width.
    pub(super) fn edge(&mut self) -> u64 {
        let width = self.of(&[8, 16, 31, 32, 33, 48, 59, 63, 64]);
        let top = u64::MAX >> (64 - width);
        let near = self.random.below(3);
        match self.below(6) {
            0 => near,
            1 => u64::MAX - near,
            2 => top - near.min(top),
            3 => top.wrapping_add(near),
            4 => 1 << self.below(64),
            _ => self.any() & top,
        }
    }

    /// Returns the number, or an absurd one.
    pub(super) fn or_edge(&mut self, number: u64) -> u64 {
        match self.absurd() {
            true => self.edge(),
            false => number,
        }
    }

    /// Returns the text of a number that is none, or far too large.
    pub(super) fn odd_number(&mut self) -> String {
        let fixed = [
            "-1",
            "0",
            "NaN",
            "nan",
            "inf",
            "-inf",
            "1e30",
            "1e308",
            "1e-320",
            "0x",
            "",
            "--",
            "+5",
            "1.2.3",
            "1,000,000",
            "18446744073709551615",
            "18446744073709551616",
            "9223372036854775808",
            "4294967296",
            "2147483648",
            "99999999999999999999999999999999",
            "0.000000000000000000000000000001",
            "100.01",
            "1e",
            "٣",
            "½",
        ];
        match self.below(8) {
            0 => self.edge().to_string(),
            1 => format!("-{}", self.edge()),
            2 => "9".repeat(1 + self.below(400)),
            3 => format!("{}.{}", self.edge(), self.edge()),
            _ => self.of(&fixed).to_owned(),
        }
    }

    /// Returns a name that steers, is markup, or is no text.
    pub(super) fn odd_name(&mut self) -> Vec<u8> {
        let fixed: [&[u8]; 12] = [
            b"",
            b" ",
            b"</script><img src=x onerror=alert(1)>",
            b"\x1b[2J\x1b]0;owned\x07",
            b"=1+2+A1",
            b"../../../../etc/passwd",
            b"\xff\xfe\xfd\xf0\x9f",
            b"\xe2\x80\xaeKVM",
            b"a\0b",
            b"%s%n%p",
            b"'; DROP TABLE exits; --",
            b"CPU 4294967296/KVM",
        ];
        match self.below(6) {
            0 => vec![b'('; 1 + self.below(300)],
            1 => "é\n\r\t|".repeat(1 + self.below(40)).into_bytes(),
            _ => self.of(&fixed).to_vec(),
        }
    }
}
