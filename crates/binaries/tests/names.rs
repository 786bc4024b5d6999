//! Names beside those of nm and addr2line.

use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use binaries::{MissingReason, demangle};

use crate::common::{Readelf, compile, demangled, have, here, output};

/// The C library of this machine.
fn libc() -> Option<PathBuf> {
    let text = output("ldd", &["/bin/sh"], "");
    let line = text.lines().find(|line| line.contains("libc.so"))?;
    let path = line
        .split_ascii_whitespace()
        .find(|word| word.starts_with('/'))?;
    std::fs::canonicalize(path).ok()
}

/// Functions by nm: address, bytes and names.
fn by_nm(file: &Path, more: &[&str]) -> BTreeMap<u64, Vec<(u64, String)>> {
    let file = file.display().to_string();
    let args: Vec<&str> = ["--defined-only", "-S", "--no-demangle"]
        .into_iter()
        .chain(more.iter().copied())
        .chain([file.as_str()])
        .collect();
    let mut found: BTreeMap<u64, Vec<(u64, String)>> = BTreeMap::new();
    for line in output("nm", &args, "").lines() {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let [address, size, kind, name] = words[..] else {
            continue;
        };
        if !["t", "T", "w", "W", "i"].contains(&kind) {
            continue;
        }
        let number = |word| u64::from_str_radix(word, 16).unwrap();
        let name = name.split('@').next().unwrap().to_owned();
        found
            .entry(number(address))
            .or_default()
            .push((number(size), name));
    }
    found
}

/// Every symbol at its first and its last byte, and places between symbols, which have no name.
#[test]
fn symbols_of_the_c_library_are_those_of_nm() {
    if !have(&["nm", "readelf", "ldd"]) {
        return;
    }
    let Some(file) = libc() else {
        return;
    };
    let elf = Readelf::of(&file);
    let functions = by_nm(&file, &["-D"]);
    let mut binaries = here(false);
    let mut name = |address: u64| {
        let offset = elf.offset(address)?;
        let id = elf.build_id.as_deref();
        Some(binaries.names(file.as_os_str().as_bytes(), id, offset))
    };
    let mut compared = 0;
    for (start, named) in &functions {
        for (size, _) in named {
            let last = start + size.saturating_sub(1);
            let Some((_, of_last)) = functions.range(..=last).next_back() else {
                continue;
            };
            for (address, of) in [(*start, named), (last, of_last)] {
                let found = name(address).unwrap().unwrap();
                let expected = of.iter().any(|(_, name)| found == [name.clone()]);
                assert!(expected, "{address:#x}: {found:?} {of:?}");
                compared += 1;
            }
        }
    }
    assert!(compared > 2000, "{compared} symbols");
    let mut without = 0;
    for address in elf.code(97) {
        let mut before = functions.range(..=address).rev();
        let covered = before.any(|(start, of)| of.iter().any(|(size, _)| address - start < *size));
        if !covered {
            let found = name(address).unwrap();
            if !found.as_ref().is_ok_and(|names| names[0].ends_with("@plt")) {
                assert_eq!(found, Err(MissingReason::NoSymbol), "{address:#x}");
            }
            without += 1;
        }
    }
    assert!(without > 100, "{without} places");
}

/// What addr2line says of each address: mangled names from the innermost on.
fn by_addr2line(file: &Path, addresses: &[u64]) -> Vec<Vec<String>> {
    let file = file.display().to_string();
    let input: String = addresses.iter().map(|a| format!("{a:#x}\n")).collect();
    let text = output("addr2line", &["-a", "-i", "-f", "-e", &file], &input);
    let mut raw: Vec<Vec<String>> = Vec::new();
    let mut is_name = true;
    for line in text.lines() {
        if line.starts_with("0x") {
            raw.push(Vec::new());
            is_name = true;
            continue;
        }
        if is_name {
            raw.last_mut().unwrap().push(line.to_owned());
        }
        is_name = !is_name;
    }
    raw
}

/// Compares all names of a file with those of the tools: inlined functions with addr2line's, the functions themselves
/// with nm's, since addr2line has them by DWARF, which does not tell parts of functions (`main.cold`). Returns how many
/// addresses were compared, how many of them are in inlined functions, and what differs.
fn compare(file: &Path, step: usize) -> (usize, usize, Vec<String>) {
    let elf = Readelf::of(file);
    let addresses = elf.code(step);
    let theirs = by_addr2line(file, &addresses);
    assert_eq!(theirs.len(), addresses.len());
    let functions = by_nm(file, &[]);

    let mut binaries = here(true);
    let (mut compared, mut inlined, mut differ) = (0, 0, Vec::new());
    for (address, mut theirs) in addresses.iter().zip(theirs) {
        let last = functions.range(..=address).next_back();
        let having = last
            .into_iter()
            .flat_map(|(start, of)| of.iter().filter(move |(size, _)| address - start < *size));
        let having: Vec<String> = having.map(|(_, name)| demangle(name.as_bytes())).collect();
        let offset = elf.offset(*address).unwrap();
        let id = elf.build_id.as_deref();
        let ours = binaries.names(file.as_os_str().as_bytes(), id, offset);
        // Stubs have no symbols, and neither tool has names for them.
        let ours = ours.and_then(|names| match &names[..] {
            [name] if name.ends_with("@plt") => Err(MissingReason::NoSymbol),
            _ => Ok(names),
        });
        let Ok(ours) = ours else {
            // Where no symbol is addr2line gives the one before.
            if !having.is_empty() || theirs.len() > 1 {
                differ.push(format!("{address:#x}: ours {ours:?}, theirs {theirs:?}"));
            }
            continue;
        };
        theirs
            .iter_mut()
            .for_each(|name| *name = demangle(name.as_bytes()));
        let outer = theirs.pop().unwrap();
        let (last, inner) = ours.split_last().unwrap();
        compared += 1;
        inlined += usize::from(!inner.is_empty());
        let same = having.contains(last) || having.is_empty() && *last == outer;
        if !same || inner != theirs {
            let first = inner
                .iter()
                .zip(&theirs)
                .position(|(ours, theirs)| ours != theirs);
            let at = first.unwrap_or(inner.len().min(theirs.len()));
            let theirs = theirs.get(at).unwrap_or(&outer);
            differ.push(format!(
                "{address:#x}: {at}: {} {theirs} {having:?}",
                ours[at]
            ));
        }
    }
    (compared, inlined, differ)
}

const CPP: &str = r#"
#include <algorithm>
#include <map>
#include <string>
#include <vector>
namespace shop {
struct Item { std::string name; long price; };
template <class T> inline long sum(const std::vector<T> &all) {
    long sum = 0;
    for (const T &one : all) sum += one.price;
    return sum;
}
class Cart {
    std::vector<Item> items;
    std::map<std::string, long> seen;
public:
    void put(const std::string &name, long price) { items.push_back({name, price}); seen[name] += price; }
    long total() const { return sum(items); }
    void sort() { std::sort(items.begin(), items.end(), [](const Item &a, const Item &b) { return a.price < b.price; }); }
};
}
int main(int argc, char **) {
    shop::Cart cart;
    for (int i = 0; i < argc * 10; i++) cart.put(std::to_string(i), i * 7 % 11);
    cart.sort();
    return cart.total() & 1;
}
"#;

const RUST: &str = r#"
use std::collections::{BTreeMap, HashMap};
#[derive(Debug, Clone, PartialEq, PartialOrd)]
struct Item { name: String, price: f64 }
trait Price { fn price(&self) -> f64; }
impl Price for Item { fn price(&self) -> f64 { self.price } }
fn total<P: Price>(all: &[P]) -> f64 { all.iter().map(P::price).sum() }
fn main() {
    let count = std::env::args().count() * 100;
    let mut items: Vec<Item> = (0..count).map(|n| Item { name: format!("item {n}"), price: (n * 7 % 11) as f64 }).collect();
    items.sort_by(|a, b| b.partial_cmp(a).unwrap());
    let mut by: HashMap<String, Vec<Item>> = HashMap::new();
    for item in &items { by.entry(item.name[..5].to_owned()).or_default().push(item.clone()); }
    let tree: BTreeMap<_, _> = by.iter().map(|(key, all)| (key.clone(), total(all))).collect();
    println!("{tree:?} {}", total(&items));
}
"#;

#[test]
fn inlined_functions_of_c_plus_plus_are_those_of_addr2line() {
    if !have(&["g++", "readelf", "addr2line", "c++filt"]) {
        return;
    }
    for dwarf in ["-gdwarf-5", "-gdwarf-4"] {
        let folder = tempfile::tempdir().unwrap();
        let args = ["-O2", dwarf, "-Wl,--build-id"];
        let program = compile(folder.path(), "g++", ("shop.cpp", CPP), &args);
        let (compared, inlined, differ) = compare(&program, 1);
        assert!(compared > 3000 && inlined > 1000, "{compared} {inlined}");
        assert!(
            differ.is_empty(),
            "{} {:#?}",
            differ.len(),
            &differ[..differ.len().min(12)]
        );
    }
}

#[test]
fn inlined_functions_of_rust_are_those_of_addr2line() {
    if !have(&["rustc", "readelf", "addr2line", "c++filt"]) {
        return;
    }
    // What the compiler does by itself, and what it will do.
    for mangling in ["-Cdebuginfo=2", "-Csymbol-mangling-version=v0"] {
        let folder = tempfile::tempdir().unwrap();
        let args = [
            "--edition=2024",
            "-O",
            "-g",
            "-Clink-arg=-Wl,--build-id",
            mangling,
        ];
        let program = compile(folder.path(), "rustc", ("shop.rs", RUST), &args);
        let (compared, inlined, differ) = compare(&program, 23);
        assert!(compared > 3000 && inlined > 1000, "{compared} {inlined}");
        assert!(
            differ.is_empty(),
            "{} {:#?}",
            differ.len(),
            &differ[..differ.len().min(12)]
        );
    }
}

/// A name without what demanglers of binutils print of Rust beside it: hashes, and numbers of crates.
fn plain(name: &str) -> String {
    let is_hash = |hash: &&str| hash.len() == 17 && hash.starts_with('h');
    let name = match name.rsplit_once("::") {
        Some((name, hash)) if is_hash(&hash) => name,
        _ => name,
    };
    let mut parts = name.split('[');
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match part.split_once(']') {
            Some((hash, rest))
                if hash.len() >= 12 && hash.chars().all(|c| c.is_ascii_hexdigit()) =>
            {
                plain.push_str(rest);
            }
            _ => plain.extend(["[", part]),
        }
    }
    plain
}

/// The names of everything in a program and in the library of C++, beside those of binutils.
#[test]
fn names_are_demangled_as_by_binutils() {
    if !have(&["g++", "rustc", "nm", "c++filt"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let cpp = compile(folder.path(), "g++", ("shop.cpp", CPP), &["-static"]);
    let args = ["--edition=2024", "-Csymbol-mangling-version=v0"];
    let v0 = compile(folder.path(), "rustc", ("v0.rs", RUST), &args);
    let legacy = compile(
        folder.path(),
        "rustc",
        ("legacy.rs", RUST),
        &["--edition=2024"],
    );
    for file in [cpp, v0, legacy] {
        let functions = by_nm(&file, &[]);
        let raw: Vec<String> = functions.into_values().flatten().map(|of| of.1).collect();
        let theirs = demangled(&raw);
        let mut other = Vec::new();
        for (raw, theirs) in raw.iter().zip(&theirs) {
            // c++filt writes the long names of strings and streams, which perf does not ask for, and the parameters of
            // functions for transactional memory.
            if ["Ss", "So", "Si", "Sd", "_ZGTt"]
                .iter()
                .any(|part| raw.contains(part))
            {
                continue;
            }
            let ours = demangle(raw.as_bytes());
            if ours != plain(theirs) {
                other.push(format!("{raw}\n  {ours}\n  {}", plain(theirs)));
            }
        }
        assert!(raw.len() > 1000);
        // What is left is written another way: `0ul` and `(unsigned long)0`, `8: usize` and `8`, blanks for empty
        // packs.
        assert!(other.len() * 50 < raw.len(), "{other:#?}");
    }
}

#[test]
fn stubs_are_called_as_by_objdump() {
    if !have(&["g++", "readelf", "objdump"]) {
        return;
    }
    // With one table of stubs, and with two.
    for protection in ["-fcf-protection=none", "-fcf-protection=full"] {
        let folder = tempfile::tempdir().unwrap();
        let two = ["-Wl,-z,ibtplt", "-Wl,--build-id", protection];
        let args = &two[usize::from(protection.ends_with("none"))..];
        let program = compile(folder.path(), "g++", ("shop.cpp", CPP), args);
        let elf = Readelf::of(&program);
        let text = output("objdump", &["-d", &program.display().to_string()], "");
        let mut binaries = here(false);
        let mut stubs = 0;
        let mut section = "";
        for line in text.lines() {
            section = line
                .strip_prefix("Disassembly of section ")
                .unwrap_or(section);
            // Stubs that need no table have none, and their names are not reported.
            if section == ".plt.got:" {
                continue;
            }
            let Some((address, name)) = line.split_once(" <") else {
                continue;
            };
            let Some(name) = name.strip_suffix("@plt>:") else {
                continue;
            };
            let address = u64::from_str_radix(address, 16).unwrap();
            let names = binaries.names(
                program.as_os_str().as_bytes(),
                elf.build_id.as_deref(),
                elf.offset(address + 3).unwrap(),
            );
            // What has no version at its function has none here.
            let name = demangle(name.split('@').next().unwrap().as_bytes());
            assert_eq!(names.unwrap(), [format!("{name}@plt")], "{line}");
            stubs += 1;
        }
        assert!(stubs > 10, "{stubs}");
    }
}
