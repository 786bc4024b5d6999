//! Names of types: one meaning for each, nouns, and no ending that says nothing.

use std::collections::BTreeMap;
use std::fs;
use std::sync::LazyLock;

use syn::visit::{self, Visit};

use super::{Allowances, crates, is_test, module, rust_files};

/// Of a hundred types, how many share their name with another at most.
const SHARED_PERCENT: usize = 10;

/// A type of the workspace.
struct Definition {
    name: String,
    /// The file and the line that define it.
    place: String,
    of_crate: String,
    public: bool,
}

/// The types that a file defines, apart from those for tests, and its modules for tests that are files of their own.
#[derive(Default)]
struct Definitions {
    /// Name, line, and whether it is public.
    found: Vec<(String, usize, bool)>,
    tests: Vec<String>,
}

impl Definitions {
    fn add(&mut self, name: &syn::Ident, visibility: &syn::Visibility) {
        let public = matches!(visibility, syn::Visibility::Public(_));
        let line = name.span().start().line;
        self.found.push((name.to_string(), line, public));
    }
}

impl<'ast> Visit<'ast> for Definitions {
    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if !is_test(&item.attrs) {
            visit::visit_item_mod(self, item);
        } else if item.content.is_none() {
            self.tests.push(item.ident.to_string());
        }
    }

    fn visit_item_struct(&mut self, item: &'ast syn::ItemStruct) {
        self.add(&item.ident, &item.vis);
    }

    fn visit_item_enum(&mut self, item: &'ast syn::ItemEnum) {
        self.add(&item.ident, &item.vis);
    }

    fn visit_item_union(&mut self, item: &'ast syn::ItemUnion) {
        self.add(&item.ident, &item.vis);
    }

    fn visit_item_trait(&mut self, item: &'ast syn::ItemTrait) {
        self.add(&item.ident, &item.vis);
        visit::visit_item_trait(self, item);
    }

    fn visit_item_type(&mut self, item: &'ast syn::ItemType) {
        self.add(&item.ident, &item.vis);
    }
}

/// The types of the workspace, by name.
static TYPES: LazyLock<BTreeMap<String, Vec<Definition>>> = LazyLock::new(types);

fn types() -> BTreeMap<String, Vec<Definition>> {
    let mut types: BTreeMap<String, Vec<Definition>> = BTreeMap::new();
    for (of_crate, folder) in crates() {
        let src = folder.join("src");
        let mut files = Vec::new();
        let mut tests = Vec::new();
        for file in rust_files(&src) {
            let text = fs::read_to_string(&file).expect("a source file is text");
            let parsed = syn::parse_file(&text).expect("a source file compiles");
            let mut definitions = Definitions::default();
            definitions.visit_file(&parsed);
            let module = module(&src, &file);
            let of_tests = definitions.tests.iter();
            tests.extend(
                of_tests.map(|name| [module.as_slice(), std::slice::from_ref(name)].concat()),
            );
            files.push((module, file, definitions.found));
        }
        for (module, file, found) in files {
            if tests.iter().any(|test| module.starts_with(test)) {
                continue;
            }
            for (name, line, public) in found {
                types.entry(name.clone()).or_default().push(Definition {
                    name,
                    place: format!("{}:{line}", file.display()),
                    of_crate: of_crate.clone(),
                    public,
                });
            }
        }
    }
    types
}

#[test]
fn public_types_have_names_of_their_own() {
    let mut by_crate: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for definitions in TYPES.values() {
        let public: Vec<&Definition> = definitions.iter().filter(|one| one.public).collect();
        for one in public.iter().filter(|_| public.len() > 1) {
            let others = public.iter().filter(|other| other.place != one.place);
            let others: Vec<&str> = others.map(|other| other.of_crate.as_str()).collect();
            let line = format!(
                "{}: {} is one of {} too",
                one.place,
                one.name,
                others.join(", ")
            );
            by_crate.entry(one.of_crate.clone()).or_default().push(line);
        }
    }
    let mut allowed = Allowances::of("public");
    for (of_crate, found) in &by_crate {
        allowed.check(of_crate, found);
    }
    allowed.finish();
}

#[test]
fn few_types_share_their_name() {
    let types = &*TYPES;
    let total: usize = types.values().map(Vec::len).sum();
    let shared = types.values().filter(|definitions| definitions.len() > 1);
    let found: Vec<String> = shared
        .flatten()
        .map(|one| format!("{}: {}", one.place, one.name))
        .collect();
    if found.len() * 100 > total * SHARED_PERCENT {
        crate::common::note(&format!(
            "{} of {total} types share their name",
            found.len()
        ));
        let mut allowed = Allowances::of("shared");
        allowed.check("workspace", &found);
        allowed.finish();
    }
}

/// What a name is not: the rules of `banned-types.txt`.
struct Rules {
    words: Vec<&'static str>,
    endings: Vec<&'static str>,
    suffixes: Vec<&'static str>,
    nouns: Vec<&'static str>,
}

impl Rules {
    fn read() -> Rules {
        let of = |kind: &str| {
            let lines = include_str!("banned-types.txt").lines();
            let lines =
                lines.filter_map(|line| line.split_once(' ').filter(|(first, _)| *first == kind));
            lines
                .flat_map(|(_, rest)| rest.split_whitespace())
                .collect()
        };
        Rules {
            words: of("word"),
            endings: of("ending"),
            suffixes: of("suffix"),
            nouns: of("noun"),
        }
    }

    fn forbid(&self, name: &str) -> bool {
        let is_one_word = name
            .chars()
            .filter(|character| character.is_uppercase())
            .count()
            == 1;
        let has_ending = self.endings.iter().any(|ending| name.ends_with(ending));
        let is_no_noun = self.words.contains(&name) || (has_ending && !self.nouns.contains(&name));
        (is_one_word && is_no_noun) || self.suffixes.iter().any(|suffix| name.ends_with(suffix))
    }
}

#[test]
fn types_are_nouns() {
    let rules = Rules::read();
    let mut by_crate: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for one in TYPES.values().flatten() {
        if rules.forbid(&one.name) {
            let line = format!("{}: {}", one.place, one.name);
            by_crate.entry(one.of_crate.clone()).or_default().push(line);
        }
    }
    let mut allowed = Allowances::of("nouns");
    for (of_crate, found) in &by_crate {
        allowed.check(of_crate, found);
    }
    allowed.finish();
}

#[test]
fn names_that_are_no_nouns() {
    let rules = Rules::read();
    for name in ["Told", "Who", "Walked", "VmInfo", "Entry"] {
        assert!(rules.forbid(name), "{name}");
    }
    for name in ["WalkedFiles", "Span", "Seed", "Information"] {
        assert!(!rules.forbid(name), "{name}");
    }
}
