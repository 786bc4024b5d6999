//! The shape of the house: how long files and functions are, that arrows between crates run down, and that no two files
//! of a crate need each other, unless they are listed here as two halves of one thing. What things are called is in
//! `types` and `words`.

mod types;
mod words;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use syn::spanned::Spanned;
use syn::visit::{self, Visit};

/// Lines that a file of Rust or TOML has at most.
const LONGEST: usize = 600;
/// Lines that a function has at most, from `fn` to its closing brace. Most have far fewer; what is longer does several
/// things.
const LONGEST_FUNCTION: usize = 95;
/// Lines that half of the files have at most.
const MEDIAN: usize = 200;

/// The floors of the house as ARCHITECTURE.md draws it, the ground first: a crate uses crates of lower floors alone.
const FLOORS: &[&[&str]] = &[
    &[
        "tracefmt", "cpuset", "clocks", "devices", "stacks", "stats", "words", "forms", "binaries",
        "rings", "agent", "mask", "pasted", "httpd", "salvage", "sandbox",
    ],
    &["doubts"],
    &[
        "event",
        "perftables",
        "facts",
        "domain",
        "perfdata",
        "tracedat",
    ],
    &["tracetext", "model", "symbols", "record", "results"],
    &["redact"],
    &["source", "paths", "host", "eventtext", "bench"],
    &["analysis", "ticket", "recording"],
    &["rules"],
    &["compare", "session", "counts"],
    &["render", "live"],
    &["report", "export", "store"],
    &["cli"],
    // They are for tests alone, so nobody may use them.
    &["testguest", "fixtures"],
];

/// Files that need each other since they are halves of one thing, and why they are two files.
const HALVES: &[(&[&str], &str)] = &[(
    &["rules/finding", "rules/rule"],
    "a finding names its rule, and a rule's code returns findings",
)];

/// What still breaks a rule about names and lines, by the lists of `house/still-to-do.txt`, which only ever shrink.
struct Allowances {
    rule: &'static str,
    /// By the part of the workspace, how often the rule is broken there at most.
    most: BTreeMap<&'static str, usize>,
    wrong: Vec<String>,
}

impl Allowances {
    fn of(rule: &'static str) -> Allowances {
        let mut most = BTreeMap::new();
        for line in include_str!("house/still-to-do.txt").lines() {
            let mut parts = line.split_whitespace();
            if parts.next() == Some(rule)
                && let (Some(part), Some(number)) = (parts.next(), parts.next())
            {
                most.insert(part, number.parse().expect("a number of offences"));
            }
        }
        Allowances {
            rule,
            most,
            wrong: Vec::new(),
        }
    }

    /// Notes what breaks the rule in a part of the workspace, if it is more than is still to be done there.
    fn check(&mut self, part: &str, found: &[String]) {
        let most = self.most.get(part).copied().unwrap_or_default();
        crate::common::note(&format!("{} {part} {}", self.rule, found.len()));
        if found.len() > most {
            let rule = self.rule;
            let number = found.len();
            let list = found.join("\n");
            self.wrong.push(format!(
                "{rule}: {part} has {number}, at most {most}:\n{list}"
            ));
        }
    }

    fn finish(self) {
        assert!(self.wrong.is_empty(), "{}", self.wrong.join("\n"));
    }
}

/// Crates in which a folder's own file (`lib.rs`, `mod.rs`) still holds what the files of its folder need. In all
/// others it hands on what these have, and needs none of them for itself.
const FACES_WITH_NEEDS: &[&str] = &[
    "analysis",
    "cli",
    "clocks",
    "devices",
    "event",
    "export",
    "mask",
    "model",
    "perfdata",
    "record",
    "render",
    "session",
    "testguest",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns the Rust files below a folder.
fn rust_files(folder: &Path) -> Vec<PathBuf> {
    files(folder, "rs")
}

/// Returns the files below a folder whose names end so.
fn files(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path
                .extension()
                .is_some_and(|extension| extension == ending)
            {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// Returns the names and the folders of the workspace's crates, the guest for tests too.
fn crates() -> BTreeMap<String, PathBuf> {
    let folders = fs::read_dir(root().join("crates")).expect("the workspace has crates");
    let folders = folders.flatten().map(|entry| entry.path());
    folders
        .chain([root().join("testguest")])
        .filter(|folder| folder.join("Cargo.toml").exists())
        .map(|folder| {
            let name = folder.file_name().unwrap_or_default();
            (name.to_string_lossy().into_owned(), folder)
        })
        .collect()
}

/// Who opens it wants to know in a minute what to type; the rest is in `docs`.
#[test]
fn the_readme_is_short() {
    const MOST: usize = 150;
    let text = fs::read_to_string(root().join("README.md")).expect("there is one");
    assert!(
        text.lines().count() <= MOST,
        "README.md has over {MOST} lines"
    );
}

#[test]
fn files_are_short() {
    let mut lengths = Vec::new();
    let mut long = Vec::new();
    for folder in crates().values() {
        let rust = rust_files(folder);
        for file in rust.iter().chain(&files(folder, "toml")) {
            let text = fs::read_to_string(file).expect("a source file is text");
            let lines = text.lines().count();
            if rust.contains(file) {
                lengths.push(lines);
            }
            if lines > LONGEST {
                long.push(format!("{}: {lines} lines", file.display()));
            }
        }
    }
    assert!(
        long.is_empty(),
        "over {LONGEST} lines:\n{}",
        long.join("\n")
    );
    lengths.sort_unstable();
    let median = lengths[lengths.len() / 2];
    assert!(
        median <= MEDIAN,
        "half of the files have over {median} lines"
    );
}

#[test]
fn arrows_between_crates_run_down() {
    let crates = crates();
    let floors = FLOORS.iter().zip(0usize..);
    let floor: BTreeMap<&str, usize> = floors
        .flat_map(|(names, floor)| names.iter().map(move |name| (*name, floor)))
        .collect();
    let mut wrong = Vec::new();
    for (name, folder) in &crates {
        let Some(own) = floor.get(name.as_str()) else {
            wrong.push(format!("{name} stands on no floor"));
            continue;
        };
        let manifest =
            fs::read_to_string(folder.join("Cargo.toml")).expect("a crate has a manifest");
        let manifest: toml::Table = manifest.parse().expect("a manifest is TOML");
        let used = manifest.get("dependencies").and_then(toml::Value::as_table);
        for used in used.into_iter().flat_map(toml::Table::keys) {
            if crates.contains_key(used)
                && floor.get(used.as_str()).is_none_or(|floor| floor >= own)
            {
                wrong.push(format!("{name} uses {used}, which is not below it"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A module's path in its crate: empty for `lib.rs` and `main.rs`.
type Module = Vec<String>;

/// Returns the module that a file of `src` is.
fn module(src: &Path, file: &Path) -> Module {
    let below = file.strip_prefix(src).expect("a file of the crate");
    let parts = below.with_extension("");
    let parts = parts
        .components()
        .map(|part| part.as_os_str().to_string_lossy().into_owned());
    let mut parts: Vec<String> = parts.collect();
    let is_face = |name: &String| ["mod", "lib", "main"].contains(&name.as_str());
    if parts.last().is_some_and(is_face) {
        parts.pop();
    }
    parts
}

/// The paths that a file names, and what it hands on under a name of its own.
#[derive(Default)]
struct Named {
    paths: Vec<Vec<String>>,
    /// By the name that others use, the path that it stands for.
    handed_on: BTreeMap<String, Vec<String>>,
}

impl Named {
    fn tree(&mut self, before: &[String], tree: &syn::UseTree, hands_on: bool) {
        let mut path = before.to_vec();
        match tree {
            syn::UseTree::Path(part) => {
                path.push(part.ident.to_string());
                self.tree(&path, &part.tree, hands_on);
            }
            syn::UseTree::Name(name) => {
                path.push(name.ident.to_string());
                self.leaf(path, name.ident.to_string(), hands_on);
            }
            syn::UseTree::Rename(name) => {
                path.push(name.ident.to_string());
                self.leaf(path, name.rename.to_string(), hands_on);
            }
            syn::UseTree::Glob(_) => self.paths.push(path),
            syn::UseTree::Group(group) => {
                for tree in &group.items {
                    self.tree(&path, tree, hands_on);
                }
            }
        }
    }

    fn leaf(&mut self, path: Vec<String>, name: String, hands_on: bool) {
        if hands_on {
            self.handed_on.insert(name, path);
        } else {
            self.paths.push(path);
        }
    }
}

/// Whether an item is compiled for tests alone.
fn is_test(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let of_cfg = attribute.path().is_ident("cfg");
        of_cfg
            && attribute
                .parse_args::<syn::Path>()
                .is_ok_and(|path| path.is_ident("test"))
    })
}

impl<'ast> Visit<'ast> for Named {
    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        if !is_test(&item.attrs) {
            let hands_on = !matches!(item.vis, syn::Visibility::Inherited);
            self.tree(&[], &item.tree, hands_on);
        }
    }

    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if !is_test(&item.attrs) {
            visit::visit_item_mod(self, item);
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let parts = path.segments.iter().map(|part| part.ident.to_string());
        let parts: Vec<String> = parts.collect();
        if parts.len() > 1 {
            self.paths.push(parts);
        }
        visit::visit_path(self, path);
    }
}

/// The functions of a file, and the modules that are files of their own and tests.
#[derive(Default)]
struct Functions {
    /// Name, first line, and number of lines.
    found: Vec<(String, usize, usize)>,
    tests: Vec<String>,
}

impl Functions {
    fn of(file: &Path) -> Functions {
        let text = fs::read_to_string(file).expect("a source file is text");
        let parsed = syn::parse_file(&text).expect("a source file compiles");
        let mut functions = Functions::default();
        functions.visit_file(&parsed);
        functions
    }

    fn add(&mut self, signature: &syn::Signature, body: &syn::Block) {
        let first = signature.span().start().line;
        let last = body.brace_token.span.close().end().line;
        let name = signature.ident.to_string();
        self.found.push((name, first, last + 1 - first));
    }
}

impl<'ast> Visit<'ast> for Functions {
    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if !is_test(&item.attrs) {
            visit::visit_item_mod(self, item);
        } else if item.content.is_none() {
            self.tests.push(item.ident.to_string());
        }
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.add(&item.sig, &item.block);
        visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.add(&item.sig, &item.block);
        visit::visit_impl_item_fn(self, item);
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        if let Some(body) = &item.default {
            self.add(&item.sig, body);
        }
        visit::visit_trait_item_fn(self, item);
    }
}

#[test]
fn functions_are_short() {
    let mut long = Vec::new();
    for folder in crates().values() {
        let src = folder.join("src");
        let files = rust_files(&src);
        let files = files.iter().map(|file| (file, Functions::of(file)));
        let files: Vec<(&PathBuf, Functions)> = files.collect();
        let tests = files.iter().flat_map(|(file, functions)| {
            let module = module(&src, file);
            let tests = functions.tests.iter();
            tests.map(move |name| [module.as_slice(), std::slice::from_ref(name)].concat())
        });
        let tests: Vec<Module> = tests.collect();
        for (file, functions) in &files {
            let module = module(&src, file);
            if tests.iter().any(|test| module.starts_with(test)) {
                continue;
            }
            for (name, first, lines) in &functions.found {
                if *lines > LONGEST_FUNCTION {
                    long.push(format!("{}:{first}: {name}: {lines} lines", file.display()));
                }
            }
        }
    }
    assert!(
        long.is_empty(),
        "over {LONGEST_FUNCTION} lines:\n{}",
        long.join("\n")
    );
}

/// The files of a crate, and which needs which.
struct Crate {
    named: BTreeMap<Module, Named>,
}

impl Crate {
    fn read(src: &Path) -> Crate {
        let mut named = BTreeMap::new();
        for file in rust_files(src) {
            let text = fs::read_to_string(&file).expect("a source file is text");
            let parsed = syn::parse_file(&text).expect("a source file compiles");
            let mut names = Named::default();
            names.visit_file(&parsed);
            named.insert(module(src, &file), names);
        }
        Crate { named }
    }

    /// Returns the module in which something is that a module calls by a path; `None` where it is of another crate.
    fn home(&self, from: &Module, path: &[String], turns: usize) -> Option<Module> {
        let mut at = from.clone();
        let mut parts = path.iter().peekable();
        match parts.peek()?.as_str() {
            "crate" => {
                at.clear();
                parts.next();
            }
            "self" => {
                parts.next();
            }
            "super" => {
                while parts.next_if(|part| *part == "super").is_some() {
                    at.pop();
                }
            }
            first => {
                let mut below = at.clone();
                below.push(first.to_owned());
                let handed_on = self.named.get(&at)?.handed_on.contains_key(first);
                if !self.named.contains_key(&below) && !handed_on {
                    return None;
                }
            }
        }
        while let Some(part) = parts.peek() {
            let mut below = at.clone();
            below.push((*part).clone());
            if !self.named.contains_key(&below) {
                break;
            }
            at = below;
            parts.next();
        }
        // What a face hands on is at home elsewhere.
        let next = parts
            .next()
            .and_then(|part| self.named.get(&at)?.handed_on.get(part));
        match next {
            Some(path) if turns > 0 => self.home(&at, path, turns - 1),
            _ => Some(at),
        }
    }

    /// Returns, for each file, the files that it needs. What it hands on it does not need for itself. `faces` says
    /// whether it counts that a folder's own file (`lib.rs`, `mod.rs`) needs the files in its folder.
    fn needs(&self, faces: bool) -> BTreeMap<Module, BTreeSet<Module>> {
        let needs = self.named.iter().map(|(module, named)| {
            let homes = named
                .paths
                .iter()
                .filter_map(|path| self.home(module, path, 8));
            let homes = homes.filter(|home| match faces {
                true => home != module,
                false => !home.starts_with(module),
            });
            (module.clone(), homes.collect())
        });
        needs.collect()
    }
}

/// Returns all that can be reached from a module.
fn reached(needs: &BTreeMap<Module, BTreeSet<Module>>, from: &Module) -> BTreeSet<Module> {
    let mut seen = BTreeSet::new();
    let mut next: Vec<&Module> = needs.get(from).into_iter().flatten().collect();
    while let Some(module) = next.pop() {
        if seen.insert(module.clone()) {
            next.extend(needs.get(module).into_iter().flatten());
        }
    }
    seen
}

#[test]
fn files_of_a_crate_do_not_need_each_other() {
    let mut found = Vec::new();
    for (name, folder) in crates() {
        let faces = !FACES_WITH_NEEDS.contains(&name.as_str());
        let needs = Crate::read(&folder.join("src")).needs(faces);
        let mut seen = BTreeSet::new();
        for module in needs.keys() {
            let circle: BTreeSet<Module> = reached(&needs, module)
                .into_iter()
                .filter(|other| reached(&needs, other).contains(module))
                .collect();
            if circle.len() < 2 || !seen.insert(circle.clone()) {
                continue;
            }
            let files: Vec<String> = circle
                .iter()
                .map(|part| {
                    let part = part.join("/");
                    format!("{name}/{}", if part.is_empty() { "lib" } else { &part })
                })
                .collect();
            let known = HALVES.iter().any(|(halves, _)| {
                halves.len() == files.len()
                    && halves
                        .iter()
                        .all(|half| files.iter().any(|file| file == half))
            });
            if !known {
                let ties = circle.iter().flat_map(|from| {
                    needs[from]
                        .iter()
                        .filter(|to| circle.contains(*to))
                        .map(move |to| format!("  {} -> {}", from.join("/"), to.join("/")))
                });
                let ties: Vec<String> = ties.collect();
                found.push(format!("{}\n{}", files.join(", "), ties.join("\n")));
            }
        }
    }
    assert!(
        found.is_empty(),
        "files that need each other:\n{}",
        found.join("\n")
    );
}
