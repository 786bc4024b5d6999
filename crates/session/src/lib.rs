/*!
Opens inputs, walks each once, and hands out a picture of it. This is the front door for programs that use trapline as a
library; the command line uses it too.

A [`Session`] is what all inputs are read with: facts of the host, a map of devices, symbols, filters
([`SessionOptions`]). It opens an [`Input`], which is a recording, a text with tables that perf printed, or both.
[`Session::pictures`] walks each recording once and returns an [`analysis::Picture`] of it: exits, vCPUs, scheduling,
paths, and what rules look at. For another question, [`Input::recording`] gives the recording with its filters ready,
and any [`event::Sink`] can be walked over it.

Nothing is printed here. Errors say which input is meant, what is wrong with it, and what to do ([`Error`]). An input of
another kind than the wanted one is named for what it is ([`sniff`]), in the same words everywhere.

```
use analysis::ExitTable;
use session::{PictureOptions, Session, SessionOptions};

fn print_exits(path: &str) -> Result<(), session::Error> {
    let session = Session::open(SessionOptions::default())?;
    for picture in session.pictures(&[path.into()], &PictureOptions::default())? {
        for row in picture.rows(ExitTable::Vmexit) {
            println!("{} {} times, {} ns", row.key, row.stats.count(), row.stats.total());
        }
        for finding in rules::diagnose(&[rules::Case { picture: &picture, facts: None, domain: None }]).findings {
            println!("{}", finding.title);
        }
    }
    Ok(())
}

let error = print_exits("nowhere.data").unwrap_err().to_string();
assert!(error.starts_with("nowhere.data: no such file"));
```

Files are opened by `source` and `binaries` alone; this crate has no I/O of its own, no clock, and no terminal.
*/
#![forbid(unsafe_code)]

mod cell_walk;
mod choose;
mod counters;
mod definition;
mod details;
mod device_names;
mod doubted_clock;
mod error;
mod event_printer;
mod filter_targets;
mod flame;
mod flame_doubts;
mod folded;
mod guest_kernels;
mod guest_stacks;
mod guests;
mod holds;
mod hops;
mod host_facts;
mod input;
mod input_forms;
mod interrupts;
mod kallsyms;
mod kernel_names;
mod kind;
mod lender;
mod opened;
mod options;
mod pairs;
mod path_file;
mod picture;
mod question;
mod required;
mod tables;
mod tickets;
mod time;
mod user_functions;
mod user_stacks;
mod virtqueues;
mod walk_costs;
mod watch;
mod window;

pub use analysis::FilterScope;
pub use binaries::{
    DebuginfodAccess, DebuginfodProcess, MissingReason, SearchOptions, serve_debuginfod,
};
pub use cell_walk::{CellPart, CellParts, MAX_CELL_PARTS};
pub use counters::RecordingCounters;
pub use definition::DomainFile;
pub use device_names::DeviceNames;
pub use error::Error;
pub use event_printer::event_printer;
pub use flame::RecordingStacks;
pub use flame_doubts::flame_doubts;
pub use guest_kernels::GuestKernels;
pub use guest_stacks::GuestStacks;
pub use guests::{
    Guest, GuestAbout, GuestClock, GuestInput, GuestPairing, HostInput, NamedGuest, PairingEvidence,
};
pub use host_facts::{HostFacts, read_facts};
pub use input::Input;
pub use input_forms::input_forms;
pub use interrupts::RecordingInterrupts;
pub use kind::{InputKind, InputPurpose, sniff};
pub use opened::OpenRecording;
pub use options::{Filters, PictureOptions, SessionOptions};
pub use path_file::{read_path, read_path_of};
pub use picture::{PictureWalk, RecordingPicture};
pub use question::{RecordingAnswers, RecordingQuestion, StudySink};
pub use required::RequiredEvents;
pub use source::{ReadActivity, ReadProgress, ReadStep};
pub use tables::{PrintedTables, describe};
pub use tickets::{TicketFile, scores_before};
pub use time::{TimeError, TimeRange};
pub use user_functions::UserFunctions;
pub use virtqueues::RecordingVirtqueues;
pub use watch::PathWatch;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use analysis::{Origin, Picture};
use domain::Domain;
use facts::Facts;
use lender::Lender;
use source::ReaderOptions;
use symbols::Modules;
use tickets::Tickets;
use tracefmt::Kallsyms;

/// What inputs are read with.
#[derive(Debug)]
pub struct Session {
    options: SessionOptions,
    lender: Lender,
    tickets: Tickets,
    facts: HostFacts,
    devices: DeviceNames,
    kallsyms: Option<Kallsyms>,
    guest_kallsyms: Option<Kallsyms>,
    guest_modules: Modules,
    /// Whether standard input was read.
    standard_input: AtomicBool,
}

impl Session {
    /// Reads what stands beside the inputs: formats, facts, a map of devices, symbols.
    ///
    /// # Errors
    ///
    /// Fails when one of these files cannot be read, or is of another kind.
    pub fn open(options: SessionOptions) -> Result<Session, Error> {
        options.one_standard_input(&[])?;
        let lender = Lender::open(&options)?;
        let tickets = Tickets::open(&options);
        let of_tickets = tickets.files().iter();
        let of_tickets = of_tickets.map(|file| (file.name(), &file.ticket().facts));
        let facts = HostFacts::open(&options.facts)?.with(of_tickets);
        let devices = DeviceNames::open(options.mtree.as_deref(), &facts)?;
        let kallsyms = kallsyms::open("--kallsyms", options.kallsyms.as_deref())?;
        let guest = options.guest_kallsyms.as_deref();
        let guest_kallsyms = kallsyms::open("--guest-kallsyms", guest)?;
        let guest_modules = guest_kernels::modules(options.guest_modules.as_deref())?;
        let standard_input = options.beside().any(options::is_standard_input);
        Ok(Session {
            standard_input: AtomicBool::new(standard_input),
            options,
            lender,
            tickets,
            facts,
            devices,
            kallsyms,
            guest_kallsyms,
            guest_modules,
        })
    }

    /// Opens an input.
    ///
    /// # Errors
    ///
    /// Fails when it cannot be read or is empty. What kind it is of is decided when it is used.
    pub fn input(&self, path: &Path) -> Result<Input<'_>, Error> {
        self.input_with(path, self.options.threads)
    }

    /// Opens an input that so many threads may work on.
    fn input_with(&self, path: &Path, threads: usize) -> Result<Input<'_>, Error> {
        let twice = || self.standard_input.swap(true, Ordering::Relaxed);
        if options::is_standard_input(path) && twice() {
            return Err(Error::StandardInputTwice);
        }
        Input::open(self, path, threads)
    }

    /// Returns the inputs in which several things stand.
    pub fn tickets(&self) -> &[TicketFile] {
        self.tickets.files()
    }

    /// Returns inputs with the parts of those in which several things stand in their places, each by its path.
    fn parts_of(&self, inputs: &[PathBuf]) -> Vec<PathBuf> {
        let each = inputs.iter().flat_map(|path| match self.tickets.get(path) {
            Some(file) if file.is_cut() => file.paths(),
            _ => vec![path.clone()],
        });
        each.collect()
    }

    /// Returns pictures of texts in which there are facts of what happened, and neither events nor tables: they are
    /// empty, and the facts stand beside them.
    pub fn of_facts(&self) -> Vec<Picture> {
        let files = self.tickets().iter();
        let alone = files.filter(|file| !file.has_pictures() && file.ticket().facts.has_history());
        let picture = |file: &TicketFile| Picture {
            origin: Origin::Printed,
            names: vec![file.name().to_owned()],
            places: vec![file.ticket().facts.summary()],
            ..Picture::default()
        };
        alone.map(picture).collect()
    }

    /// Returns the definition of the guest that a picture is of, where the inputs have one; none where they have
    /// several and the picture's own text does not name the guest.
    pub fn domain_of(&self, picture: &Picture) -> Option<&Domain> {
        let mut names = picture.names.iter();
        let own = names.find_map(|name| self.tickets.domain_of(name));
        // One that is given beside it is of the guest that all is about.
        let mut all = self.tickets().iter().flat_map(TicketFile::definitions);
        let mut only = || all.next().filter(|_| all.next().is_none());
        own.or_else(|| only().map(|one| &one.domain))
    }

    /// Returns how recordings are to be read.
    fn reading(&self, symbols: bool, threads: usize) -> ReaderOptions<'_> {
        ReaderOptions {
            lent: self.lender.formats(),
            symbols,
            threads,
            own_clock: false,
        }
    }

    /// Returns what the session was opened with.
    pub fn options(&self) -> &SessionOptions {
        &self.options
    }

    /// Returns the facts of the host.
    pub fn facts(&self) -> &Facts {
        self.facts.all()
    }

    /// Returns the facts of the host, with what they tell of a recording's threads.
    pub fn host_facts(&self) -> &HostFacts {
        &self.facts
    }

    /// Returns the names of devices.
    pub fn devices(&self) -> &DeviceNames {
        &self.devices
    }
}
