//! Names of the kernel's functions where neither the recording nor an option has them: by the kernel's build id.
//!
//! A recording says where one symbol of its kernel was, and where its modules began. Symbols of the same kernel are
//! moved by the difference, since a kernel lies elsewhere after each boot; what cannot be moved names nothing.

use std::collections::HashMap;
use std::ops::ControlFlow;

use binaries::{KernelSearch, ModuleCode, RunningKernel, SearchOptions, loaded_module_has};
use event::{Event, EventType, Side, Sink};
use source::RecordingReader;
use symbols::{KernelPlaces, ModulePlace, Modules, PlacedSymbols, module_of};
use tracefmt::{Kallsyms, KallsymsLines};

/// Symbols of the recorded kernel, where it was.
#[derive(Debug)]
pub(crate) struct FoundSymbols {
    pub symbols: Kallsyms,
    /// What they are of, in words.
    pub origin: &'static str,
}

/// A kernel or a module, and its build id.
#[derive(Debug, Clone, Copy)]
struct NotedFile<'i> {
    path: &'i str,
    id: &'i [u8],
}

/// What is in front of a recording's events.
#[derive(Debug, Default)]
struct PlacesSink {
    places: KernelPlaces,
}

impl Sink for PlacesSink {
    fn wants(&mut self, _: &EventType<'_>) -> bool {
        true
    }

    fn event(&mut self, _: &Event<'_>) -> ControlFlow<()> {
        ControlFlow::Break(())
    }

    fn side(&mut self, side: &Side<'_>) {
        self.places.side(side);
    }
}

/// Looks for the symbols of a recording's kernel. Nothing is opened where the recording has no address of the kernel
/// that could be named.
pub(crate) fn find(reader: &RecordingReader<'_>, options: &SearchOptions) -> Option<FoundSymbols> {
    let perf = reader.perf_data()?;
    let mut attrs = perf.attrs().iter();
    let has_code = attrs.any(|attr| {
        let of_work = attr.name.starts_with("workqueue:");
        attr.has_callchain() || attr.tracepoint_id().is_none() || of_work
    });
    if options.has_no_kernels() || !has_code {
        return None;
    }
    let listed = perf.info().build_ids.iter();
    let listed = listed.filter(|id| id.kernel && !id.guest);
    let listed: Vec<NotedFile<'_>> = listed
        .map(|noted| NotedFile {
            path: &noted.path,
            id: &noted.id,
        })
        .filter(|noted| noted.id.iter().any(|byte| *byte != 0))
        .collect();
    let release = reader.header().kernel.as_deref();
    let noted = kernel_id(&listed);
    let promising = |id| KernelSearch::new(options, id, release).is_promising();
    if noted.is_some_and(|id| !promising(id)) {
        return None;
    }
    let mut sink = PlacesSink::default();
    reader.walk(&mut sink);
    let places = sink.places;
    let (reference, _) = places.reference()?;
    let search = KernelSearch::new(options, places.build_id().or(noted)?, release);
    let mut placed = PlacedSymbols::new(&places);
    let running = search.running();
    let moved = running
        .as_ref()
        .and_then(|running| of_text(&mut placed, reference, &running.symbols));
    let origin = match moved {
        Some(_) => "the running kernel of this machine",
        None => of_files(&mut placed, reference, &search)?,
    };
    let running = running.as_ref().zip(moved);
    add_modules(&mut placed, &places, running, &listed, options);
    let symbols = placed.finish()?;
    Some(FoundSymbols { symbols, origin })
}

/// Returns the build id that is noted of the kernel itself: perf names it by the file that it found, if any. `None`
/// where there are several.
fn kernel_id<'i>(listed: &[NotedFile<'i>]) -> Option<&'i [u8]> {
    let is_kernel =
        |noted: &&NotedFile<'_>| module_of(noted.path).is_none() && !noted.path.starts_with("[v");
    let mut ids = listed.iter().filter(is_kernel).map(|noted| noted.id);
    let first = ids.next()?;
    ids.all(|id| id == first).then_some(first)
}

/// Adds the kernel's own symbols of a text as `/proc/kallsyms` has it, and returns by what they were moved.
fn of_text(placed: &mut PlacedSymbols<'_>, reference: &str, text: &[u8]) -> Option<u64> {
    let own = || KallsymsLines::of(text).filter(|line| line.module.is_none());
    let address = own().find(|line| line.name == reference)?.address;
    placed.add_kernel(address, own().map(|line| (line.address, line.name)))
}

/// Adds the kernel's own symbols of the first file that has them, and returns what it is.
fn of_files(
    placed: &mut PlacedSymbols<'_>,
    reference: &str,
    search: &KernelSearch<'_>,
) -> Option<&'static str> {
    let mut copies = search.copies();
    let copied = copies.any(|text| of_text(placed, reference, &text).is_some());
    if copied {
        return Some("the copy of /proc/kallsyms that perf keeps");
    }
    let image = search.image(reference)?;
    placed.add_kernel(image.reference, image.functions())?;
    Some("a file of the kernel")
}

/// Adds the symbols of modules: of those that are loaded, where the kernel is the running one, and of files.
///
/// That a kernel is the same does not show that its modules are. One is used if it has the recording's build id, or if
/// the recording has none of it and this is the same boot: the kernel is where it was, and so is the module.
fn add_modules(
    placed: &mut PlacedSymbols<'_>,
    places: &KernelPlaces,
    running: Option<(&RunningKernel, u64)>,
    listed: &[NotedFile<'_>],
    options: &SearchOptions,
) {
    let modules = running.map(|(running, _)| Modules::parse(&running.modules));
    let modules = modules.unwrap_or_default();
    let loaded: HashMap<&str, (u64, u64)> = modules
        .each()
        .map(|(name, start, len)| (name, (start, len)))
        .collect();
    let mut noted: HashMap<String, NotedFile<'_>> = HashMap::new();
    for file in listed {
        if let Some(name) = module_of(file.path) {
            noted.entry(name).or_insert(*file);
        }
    }
    let mut wanted: HashMap<&str, Vec<(u64, &str)>> = HashMap::new();
    let mut found: Vec<(ModulePlace<'_>, (u64, u64))> = Vec::new();
    for module in places.modules() {
        let noted = noted.get(module.name);
        let id = module.build_id.or(noted.map(|noted| noted.id));
        let own = loaded.get(module.name).filter(|(start, len)| match id {
            Some(id) => loaded_module_has(options, module.name, id),
            None => {
                let stayed = running.is_some_and(|(_, moved)| moved == 0);
                stayed && (*start, *len) == (module.start, module.len)
            }
        });
        if let Some(own) = own {
            wanted.entry(module.name).or_default();
            found.push((module, *own));
        } else if let Some((id, noted)) = id.zip(noted)
            && let Some(code) = ModuleCode::find(options, noted.path, id)
        {
            placed.add_module(&module, (0, code.len), code.functions());
        }
    }
    let text = running.map_or(&[][..], |(running, _)| &running.symbols);
    for line in KallsymsLines::of(text).filter(|line| b"tTwW".contains(&line.kind)) {
        let list = line.module.and_then(|module| wanted.get_mut(module));
        if let Some(list) = list {
            list.push((line.address, line.name));
        }
    }
    for (module, own) in found {
        let list = wanted.get(module.name).into_iter().flatten();
        // What its memory is in all says nothing of where it lies: only what is behind its first address is code.
        let (start, len) = own;
        let within = list.filter(|(at, _)| at.wrapping_sub(start) < len);
        placed.add_module(&module, own, within.copied());
    }
}
