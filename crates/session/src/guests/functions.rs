//! The functions of guests' kernels: by the symbols in guests' own recordings, or those given beside.

use analysis::{ExitsReport, GuestStarts};
use doubts::DoubtKind;
use event::Quality;
use symbols::KernelFunctions;

use crate::{Guest, OpenRecording};

/// Of the exits in guests' kernels, how many may be in no function before that is said.
const UNNAMED: f64 = 0.02;

impl OpenRecording<'_> {
    /// Returns where the functions of guests' kernels begin; `None` if there are no symbols of any guest.
    pub fn guest_starts(&self, guests: &[Guest<'_>]) -> Option<GuestStarts> {
        let mut starts = GuestStarts::new(self.guest_functions().starts());
        let mut any = self.session.guest_kallsyms.is_some();
        for guest in guests {
            let own = self.functions_of(guest).starts();
            any |= !own.is_empty();
            let tids = guest.vcpus().iter().map(|(_, tid)| *tid);
            starts = starts.of_guest(tids, own);
        }
        any.then_some(starts)
    }

    /// Names functions in rows of exits, and says in `quality` of how many there is no name.
    pub fn name_guest_functions(
        &self,
        reports: &mut [ExitsReport],
        guests: &[Guest<'_>],
        quality: &mut Quality,
    ) {
        let kernels: Vec<KernelFunctions<'_>> = std::iter::once(self.guest_functions())
            .chain(guests.iter().map(|guest| self.functions_of(guest)))
            .collect();
        for report in &mut *reports {
            report.name_functions(|kernel, start| {
                let functions = kernels.get(usize::from(kernel))?;
                match (functions.name(start), functions.module(start)) {
                    (Some(name), _) => Some(name.to_owned()),
                    (None, Some((module, _))) => Some(format!("[{module}]")),
                    (None, None) => None,
                }
            });
        }
        let Some(report) = reports.first() else {
            return;
        };
        let (kernel, unnamed) = report.guest_functions();
        if kernel > 0 && unnamed as f64 > UNNAMED * kernel as f64 {
            quality.raise(DoubtKind::FunctionsUnnamed {
                exits: unnamed,
                of: kernel,
            });
        }
    }

    /// Returns the functions of a guest's kernel.
    fn functions_of<'f>(&'f self, guest: &'f Guest<'_>) -> KernelFunctions<'f> {
        let own = guest.reader().formats().map(|formats| &formats.kallsyms);
        match own.filter(|own| own.has_addresses()) {
            Some(own) => {
                KernelFunctions::new(Some(own), None).with_modules(&self.session.guest_modules)
            }
            None => self.guest_functions(),
        }
    }
}
