//! What the analyses of a picture cost a recording: the time of walks with all of them, less that of walks without one.

use analysis::{StudySilence, WalkCosts, WalkTimes};

use crate::{Error, GuestPairing, Input, OpenRecording, PictureOptions};

impl Input<'_> {
    /// Walks a recording again and again, with all that its picture is asked for, and without one analysis of it after
    /// the other. The two walks of a pair follow each other, and before the first pair is one walk that does not count.
    ///
    /// `now_ns` is a clock that goes on while the calling thread works, in nanoseconds. What another thread does is not
    /// in it: [`SessionOptions::threads`](crate::SessionOptions::threads) is to be 1.
    ///
    /// # Errors
    ///
    /// As [`Input::picture`].
    pub fn walk_costs(
        &self,
        options: &PictureOptions,
        pairs: usize,
        now_ns: &dyn Fn() -> u64,
    ) -> Result<WalkCosts, Error> {
        let opened = self.recording_with_symbols()?;
        opened.require_vcpus()?;
        let (names, events) = opened.warm_up(options);
        opened.require_events(events > 0)?;
        let walk = |silence| opened.walk_time(options, silence, now_ns);
        let mut reading = WalkTimes::default();
        let mut analyses: Vec<(String, WalkTimes)> = names
            .into_iter()
            .map(|name| (name, WalkTimes::default()))
            .collect();
        for pair in 0..pairs {
            let all = analyses.iter_mut().enumerate();
            let all = all.map(|(at, (_, times))| (StudySilence::Single(at), times));
            for (silence, times) in all.chain([(StudySilence::Everybody, &mut reading)]) {
                // Whichever comes first finds the caches colder.
                let (whole, without) = match pair % 2 {
                    0 => (walk(StudySilence::Nobody), walk(silence)),
                    _ => {
                        let without = walk(silence);
                        (walk(StudySilence::Nobody), without)
                    }
                };
                times.whole_ns.push(whole);
                times.without_ns.push(without);
            }
        }
        Ok(WalkCosts::of(events, &reading, analyses))
    }
}

impl OpenRecording<'_> {
    /// Walks with all that a picture is asked for, and returns the names of the analyses, and how many events there
    /// are.
    fn warm_up(&self, options: &PictureOptions) -> (Vec<String>, u64) {
        let paired = GuestPairing::default();
        let mut question = self.question(&paired);
        let asked = self.ask_picture(options, &mut question);
        let names = question.names();
        let answers = question.walk();
        let info = answers.take(asked.handles.info).report(&answers.walked());
        let counts = info.events.iter().map(|kind| kind.count);
        (unique(names), counts.fold(0, u64::saturating_add))
    }

    /// Returns how long a walk takes of which somebody sits out.
    fn walk_time(
        &self,
        options: &PictureOptions,
        silence: StudySilence,
        now_ns: &dyn Fn() -> u64,
    ) -> u64 {
        let paired = GuestPairing::default();
        let mut question = self.question(&paired);
        question.silence(silence);
        let _asked = self.ask_picture(options, &mut question);
        let begun = now_ns();
        let _answers = question.walk();
        now_ns().saturating_sub(begun)
    }
}

/// Gives a number to each name that stands in a list already.
fn unique(names: Vec<String>) -> Vec<String> {
    let mut all: Vec<String> = Vec::with_capacity(names.len());
    for name in names {
        let others = (2..).map(|number| format!("{name} {number}"));
        let mut forms = std::iter::once(name.clone()).chain(others);
        let form = forms.find(|form| !all.contains(form));
        all.push(form.unwrap_or(name));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_rows_have_one_name() {
        let names = ["exits", "vcpus", "exits", "exits"].map(str::to_owned);
        assert_eq!(
            unique(names.to_vec()),
            ["exits", "vcpus", "exits 2", "exits 3"]
        );
    }
}
