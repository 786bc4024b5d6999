//! Functions of the kernel and of programs, by their names: where a recording can have a probe.

use std::fs;
use std::path::Path;

use anyhow::{Result, anyhow, bail};
use binaries::{MissingReason, ProgramFunctions};
use record::{PlannedEvent, RecordError, Tracefs};
use wildmatch::WildMatch;
use words::list_first;

use crate::usage::Usage;
use crate::{local_files, output};

/// What stands behind a function that is probed where it returns, as perf has it.
const RETURN: &str = "%return";
/// The event of the kernel's function tracer.
pub(super) const TRACER: &str = "ftrace:function";
/// Names that are proposed for one that is not there.
const PROPOSED: usize = 5;

/// Returns a probe as tracefs takes it: the functions of programs by their places, returns by their kind.
pub(super) fn probe(text: &str) -> Result<String> {
    let plain = text.trim();
    // Whoever writes tracefs's own syntax means it.
    if plain.contains(char::is_whitespace) {
        return Ok(text.to_owned());
    }
    let (place, kind) = match plain.strip_suffix(RETURN) {
        Some(place) => (place, "r"),
        None => (plain, "p"),
    };
    let of_program = place.starts_with('/').then(|| place.rsplit_once(':'));
    let Some(Some((file, function))) = of_program else {
        return Ok(match kind {
            "r" => format!("r:{} {place}", name(place, RETURN)),
            _ => text.to_owned(),
        });
    };
    if function.starts_with("0x") {
        return Ok(match kind {
            "r" => format!("r {place}"),
            _ => text.to_owned(),
        });
    }
    let mut functions = read(text, file)?;
    let Some(offset) = functions.offset(function) else {
        bail!(
            "--probe '{text}': {}",
            not_there(&functions, file, function)
        );
    };
    let suffix = if kind == "r" { RETURN } else { "" };
    Ok(format!(
        "{kind}:{} {file}:{offset:#x}",
        name(function, suffix)
    ))
}

/// Returns the name of a probe's event.
fn name(function: &str, suffix: &str) -> String {
    let own = function.rsplit_once(':').map_or(function, |(_, own)| own);
    match suffix {
        // As perf calls it.
        RETURN => format!("{own}__return"),
        _ => own.to_owned(),
    }
}

fn read(text: &str, file: &str) -> Result<ProgramFunctions> {
    match ProgramFunctions::read(Path::new(file), &local_files::places()) {
        Ok(functions) => Ok(functions),
        // Whatever else it is.
        Err(MissingReason::Damaged) => bail!("--probe '{text}': {file} is no program or library"),
        Err(why) => bail!("--probe '{text}': {file} {}", why.words()),
    }
}

/// Says that a program has no such function, and which are like it.
fn not_there(functions: &ProgramFunctions, file: &str, wanted: &str) -> String {
    let mut like: Vec<&str> = functions
        .names()
        .filter(|name| name.contains(wanted) || wanted.contains(name) && name.len() > 3)
        .collect();
    like.sort_unstable_by_key(|name| (name.len().abs_diff(wanted.len()), *name));
    let list = format!("'trapline record --list-probes {file}' lists those that there are");
    let why = match functions.is_complete() {
        true => "",
        false => ", which has only the symbols that other files use: install its debug symbols",
    };
    match like.is_empty() {
        true => format!("there is no function {wanted} in {file}{why}; {list}"),
        false => format!(
            "there is no function {wanted} in {file}{why}; there are {}",
            list_first(&like, PROPOSED)
        ),
    }
}

/// Returns the events that are calls of functions of the kernel, by its function tracer.
pub(super) fn planned(functions: &[String]) -> Result<Vec<PlannedEvent>> {
    if functions.is_empty() {
        return Ok(Vec::new());
    }
    let is_name = |name: &String| {
        let plain = |c: char| c.is_ascii_alphanumeric() || "_.$".contains(c);
        !name.is_empty() && name.chars().all(plain)
    };
    if let Some(other) = functions.iter().find(|name| !is_name(name)) {
        return Err(Usage::error(format!(
            "--function '{other}': takes the name of one function of the kernel; give --function for each"
        )));
    }
    let parts: Vec<String> = functions
        .iter()
        .map(|name| format!("ip == {name}"))
        .collect();
    Ok(vec![PlannedEvent {
        filter: Some(parts.join(" || ")),
        stack: true,
        ..PlannedEvent::all("ftrace", "function")
    }])
}

/// Returns the kernel's functions that can be traced, a line each, with the module of one behind it. Where that list
/// may not be read (a kernel that is locked down), it is that of all its functions.
fn of_kernel() -> Result<String> {
    let list = Tracefs::find().and_then(|tracefs| tracefs.functions());
    let error = match list {
        Ok(text) => return Ok(String::from_utf8_lossy(&text).into_owned()),
        Err(error) => error,
    };
    let all = fs::read_to_string("/proc/kallsyms").unwrap_or_default();
    let functions = all.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        let (_, kind, name) = (words.next()?, words.next()?, words.next()?);
        let module = words.next().map(|module| format!(" {module}"));
        // proc(5), nm(1): code, and weak symbols that are code too as a rule.
        let is_code = matches!(kind, "t" | "T" | "w" | "W");
        is_code.then(|| format!("{name}{}\n", module.unwrap_or_default()))
    });
    let text: String = functions.collect();
    match text.is_empty() {
        true => Err(error.into()),
        false => Ok(text),
    }
}

/// Says what the function tracer takes, where its event cannot be opened.
pub(super) fn explained(error: RecordError) -> anyhow::Error {
    match &error {
        RecordError::Open { name, .. } if name == TRACER => anyhow!(
            "--function: {error}; the function tracer takes root (CAP_SYS_ADMIN), and a kernel that is not locked down"
        ),
        _ => error.into(),
    }
}

/// Lists what can be probed, by a pattern.
pub(super) fn list(pattern: &str) -> Result<()> {
    let of_program = pattern.starts_with('/').then(|| pattern.rsplit_once(':'));
    let (file, names) = match of_program {
        Some(Some((file, names))) => (Some(file), names),
        Some(None) => (Some(pattern), "*"),
        None => (None, pattern),
    };
    let glob = WildMatch::new(names);
    let mut found: Vec<String> = Vec::new();
    if let Some(file) = file {
        let functions = read(pattern, file)?;
        let names = functions.names().filter(|name| glob.matches(name));
        found.extend(names.map(|name| format!("{file}:{name}")));
    } else {
        let text = of_kernel()?;
        let names = text.lines().filter(|line| {
            let name = line.split_whitespace().next();
            name.is_some_and(|name| glob.matches(name))
        });
        found.extend(names.map(str::to_owned));
    }
    found.sort_unstable();
    found.dedup();
    if found.is_empty() {
        bail!("--list-probes '{pattern}': there is no such function");
    }
    output::print(&(found.join("\n") + "\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_of_the_kernel_are_left_to_tracefs() {
        let read = |text| probe(text).expect("a probe");
        assert_eq!(read("irqfd_wakeup"), "irqfd_wakeup");
        assert_eq!(read("p:x tun:tun_get_user"), "p:x tun:tun_get_user");
        assert_eq!(
            read("vhost_poll_queue%return"),
            "r:vhost_poll_queue__return vhost_poll_queue"
        );
        assert_eq!(
            read("tun:tun_get_user%return"),
            "r:tun_get_user__return tun:tun_get_user"
        );
        assert_eq!(read("/bin/x:0x10"), "/bin/x:0x10");
        assert_eq!(read("/bin/x:0x10%return"), "r /bin/x:0x10");
    }

    #[test]
    fn a_function_of_a_library_has_a_place() {
        let maps = fs::read_to_string("/proc/self/maps").expect("this process");
        let libc = maps
            .split_whitespace()
            .find(|word| word.ends_with("/libc.so.6"));
        let Some(own) = libc else {
            return;
        };
        let found = probe(&format!("{own}:getppid")).expect("a probe");
        let (head, place) = found.split_once(' ').expect("a name and a place");
        assert_eq!(head, "p:getppid");
        assert!(place.starts_with(&format!("{own}:0x")), "{found}");
        let back = probe(&format!("{own}:getppid%return")).expect("a probe");
        assert!(back.starts_with("r:getppid__return "), "{back}");
        let none = probe(&format!("{own}:no_such_function_here"));
        let text = none.expect_err("there is none").to_string();
        assert!(
            text.contains("there is no function no_such_function_here"),
            "{text}"
        );
    }

    #[test]
    fn functions_are_one_event_of_the_tracer() {
        let two = ["irqfd_inject".to_owned(), "irqfd_wakeup".to_owned()];
        let planned = planned(&two).expect("an event");
        assert_eq!(planned.len(), 1);
        let filter = planned[0].filter.as_deref();
        assert_eq!(filter, Some("ip == irqfd_inject || ip == irqfd_wakeup"));
        assert!(planned[0].stack);
        assert!(super::planned(&["kvm_*".to_owned()]).is_err());
    }
}
