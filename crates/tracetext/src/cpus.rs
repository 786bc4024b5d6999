//! The CPUs that events happened on.

/// A set of CPUs: a bit for each. Numbers have five digits at most.
#[derive(Debug, Default)]
pub(crate) struct TextCpus(Vec<u64>);

impl TextCpus {
    #[inline]
    pub(crate) fn add(&mut self, cpu: i32) {
        let Ok(cpu) = usize::try_from(cpu) else {
            return;
        };
        let (word, bit) = (cpu / 64, cpu % 64);
        if self.0.len() <= word {
            self.0.resize(word + 1, 0);
        }
        self.0[word] |= 1 << bit;
    }

    /// Returns them, sorted.
    pub(crate) fn list(&self) -> Vec<u32> {
        let of_word = |(word, bits): (usize, &u64)| {
            let bits = *bits;
            let set = (0..64).filter(move |bit| bits >> bit & 1 == 1);
            set.filter_map(move |bit| u32::try_from(word * 64 + bit).ok())
        };
        self.0.iter().enumerate().flat_map(of_word).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpus_are_listed_once_and_in_order() {
        let mut cpus = TextCpus::default();
        for cpu in [130, 0, 63, 64, 0, -1] {
            cpus.add(cpu);
        }
        assert_eq!(cpus.list(), [0, 63, 64, 130]);
    }
}
