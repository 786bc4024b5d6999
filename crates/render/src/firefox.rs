//! Stacks as a file of the Firefox Profiler's, its "processed profile format".
//!
//! Tables and members are those of `src/types/profile.ts` of <https://github.com/firefox-devtools/profiler>, in version
//! 60, the first whose tables all threads share: every later loader brings it up to its own version
//! (`processed-profile-versioning.ts`), while it refuses one that is newer than itself.
//!
//! Stacks are sums, without the times of their samples. The profiler shows samples along an axis of time, so each
//! stack is one sample with its weight, which begins where the thread's weights before it end.

use rustc_hash::FxHashMap;
use serde::{Serialize, Serializer};
use serde_json::{Value, json};
use stacks::{FrameOwner, ROOT, Stacks, Weight};

/// The version of the processed format.
const VERSION: u32 = 60;
/// The version of Gecko's own format that belongs to it, which loaders expect and do not use.
const GECKO_VERSION: u32 = 32;
/// Threads that are visible at first, as many as the profiler shows of its own recordings.
const VISIBLE: usize = 15;
/// Nanoseconds of the profiler's unit of time, the millisecond.
const NS_PER_MS: f64 = 1e6;

/// Stacks, and what they are of.
#[derive(Debug, Clone, Copy)]
pub struct FirefoxProfile<'s> {
    /// The stacks. Those of one outermost frame are a thread of the profile.
    pub stacks: &'s Stacks,
    /// What the amounts are of: an event's name.
    pub event: &'s str,
    /// Whether amounts are nanoseconds; else they are counts.
    pub nanoseconds: bool,
    /// The input's name.
    pub name: &'s str,
    /// Sentences about the whole: where it is from, and what is doubted.
    pub comments: &'s [String],
}

/// Number of the category of frames without code, the first: the profiler takes the first grey one as default.
const OTHER: u32 = 0;

/// Names of categories and their colours, of the profiler's list (`CategoryColor`). Those behind the first are
/// resources too, in this order: whose code a function is.
const CATEGORIES: [(&str, &str); 7] = [
    ("Other", "grey"),
    ("Guest", "green"),
    ("VMM", "yellow"),
    ("User space", "lightblue"),
    ("Kernel", "orange"),
    ("KVM", "red"),
    ("Unknown", "darkgrey"),
];

/// Returns the number of an owner's category.
fn category(owner: FrameOwner) -> u32 {
    match owner {
        FrameOwner::Group => OTHER,
        FrameOwner::Guest => 1,
        FrameOwner::Vmm => 2,
        FrameOwner::User => 3,
        FrameOwner::Kernel => 4,
        FrameOwner::Kvm => 5,
        FrameOwner::Unknown => 6,
    }
}

/// A column of so many rows that are all the same.
#[derive(Debug)]
struct SameRows<T>(T, usize);

impl<T: Serialize> Serialize for SameRows<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(std::iter::repeat_n(&self.0, self.1))
    }
}

/// Rows that have no value.
type EmptyColumn = SameRows<Option<u32>>;

#[derive(Debug, Serialize)]
struct ProfileFile<'s> {
    meta: Value,
    libs: [(); 0],
    pages: [(); 0],
    shared: SharedTables<'s>,
    threads: Vec<ProfileThread<'s>>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct SharedTables<'s> {
    string_array: Vec<&'s str>,
    stack_table: StackTable,
    frame_table: FrameTable,
    func_table: FuncTable,
    resource_table: ResourceTable,
    native_symbols: Value,
    sources: Value,
}

#[derive(Debug, Default, Serialize)]
struct StackTable {
    frame: Vec<u32>,
    prefix: Vec<Option<u32>>,
    length: usize,
}

/// A row for each function: that is all that is known of a frame.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct FrameTable {
    address: SameRows<i32>,
    inline_depth: SameRows<u32>,
    category: Vec<u32>,
    subcategory: SameRows<u32>,
    func: Vec<u32>,
    native_symbol: EmptyColumn,
    #[serde(rename = "innerWindowID")]
    inner_window_id: EmptyColumn,
    line: EmptyColumn,
    column: EmptyColumn,
    length: usize,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct FuncTable {
    name: Vec<u32>,
    #[serde(rename = "isJS")]
    is_js: SameRows<bool>,
    #[serde(rename = "relevantForJS")]
    relevant_for_js: SameRows<bool>,
    resource: Vec<i64>,
    source: EmptyColumn,
    line_number: EmptyColumn,
    column_number: EmptyColumn,
    length: usize,
}

#[derive(Debug, Serialize)]
struct ResourceTable {
    lib: EmptyColumn,
    name: Vec<u32>,
    host: EmptyColumn,
    #[serde(rename = "type")]
    kind: SameRows<u32>,
    length: usize,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ProfileThread<'s> {
    process_type: &'static str,
    process_name: &'s str,
    process_startup_time: u32,
    process_shutdown_time: Option<u32>,
    register_time: u32,
    unregister_time: Option<u32>,
    paused_ranges: [(); 0],
    name: &'s str,
    is_main_thread: bool,
    pid: &'static str,
    tid: usize,
    samples: SamplesTable,
    markers: Value,
    /// What all of its stacks weigh.
    #[serde(skip)]
    whole: Weight,
}

#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct SamplesTable {
    stack: Vec<u32>,
    time: Vec<f64>,
    weight: SampleWeights,
    weight_type: &'static str,
    length: usize,
}

/// Weights as numbers of JSON: counts as they are, times in milliseconds.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum SampleWeights {
    Counts(Vec<u64>),
    Milliseconds(Vec<f64>),
}

impl Default for SampleWeights {
    fn default() -> SampleWeights {
        SampleWeights::Counts(Vec::new())
    }
}

/// Texts by their numbers.
#[derive(Default)]
struct TextNumbers<'s> {
    numbers: FxHashMap<&'s str, u32>,
    texts: Vec<&'s str>,
}

impl<'s> TextNumbers<'s> {
    fn number(&mut self, text: &'s str) -> u32 {
        let next = self.texts.len() as u32;
        *self.numbers.entry(text).or_insert_with(|| {
            self.texts.push(text);
            next
        })
    }
}

impl<'s> ProfileThread<'s> {
    fn new(name: &'s str, process_name: &'s str, nanoseconds: bool) -> ProfileThread<'s> {
        let (weight, weight_type) = match nanoseconds {
            true => (SampleWeights::Milliseconds(Vec::new()), "tracing-ms"),
            false => (SampleWeights::Counts(Vec::new()), "samples"),
        };
        ProfileThread {
            process_type: "default",
            process_name,
            process_startup_time: 0,
            process_shutdown_time: None,
            register_time: 0,
            unregister_time: None,
            paused_ranges: [],
            name,
            is_main_thread: false,
            pid: "0",
            tid: 0,
            samples: SamplesTable {
                weight,
                weight_type,
                ..SamplesTable::default()
            },
            markers: json!({
                "data": [], "name": [], "startTime": [], "endTime": [], "phase": [], "category": [], "length": 0,
            }),
            whole: Weight::default(),
        }
    }

    /// Adds a stack, behind those that came before.
    fn add(&mut self, stack: u32, weight: Weight) {
        let samples = &mut self.samples;
        samples.stack.push(stack);
        samples.length += 1;
        // Counts may be of anything, as of cycles: along the axis each sample has a place.
        let begin = match &mut samples.weight {
            SampleWeights::Counts(counts) => {
                counts.push(weight.amount);
                self.whole.samples as f64
            }
            SampleWeights::Milliseconds(times) => {
                times.push(weight.amount as f64 / NS_PER_MS);
                self.whole.amount as f64 / NS_PER_MS
            }
        };
        samples.time.push(begin);
        self.whole.add(weight);
    }
}

impl<'s> FirefoxProfile<'s> {
    /// Returns the profile's file.
    ///
    /// # Errors
    ///
    /// As serde_json.
    pub fn encode(&self) -> serde_json::Result<String> {
        let (stack_table, threads) = self.stacks_and_threads();
        serde_json::to_string(&ProfileFile {
            meta: self.meta(threads.len()),
            libs: [],
            pages: [],
            shared: self.shared(stack_table),
            threads,
        })
    }

    /// Returns the table of stacks, and the threads, heaviest first.
    fn stacks_and_threads(&self) -> (StackTable, Vec<ProfileThread<'s>>) {
        let mut table = StackTable::default();
        let mut threads: Vec<ProfileThread<'s>> = Vec::new();
        let mut by_name: FxHashMap<&str, usize> = FxHashMap::default();
        // By node, its thread. Nobody comes before who called it.
        let mut thread_of: Vec<usize> = vec![0];
        for (node, number) in self.stacks.tree().nodes().iter().zip(0u32..).skip(1) {
            let thread = match node.parent {
                ROOT => {
                    let name = self.stacks.name(node.frame);
                    let name = name.map_or("", |name| &*name.text);
                    *by_name.entry(name).or_insert_with(|| {
                        let thread = ProfileThread::new(name, self.name, self.nanoseconds);
                        threads.push(thread);
                        threads.len() - 1
                    })
                }
                parent => thread_of.get(parent as usize).copied().unwrap_or_default(),
            };
            thread_of.push(thread);
            // The root is no stack of the profile's.
            table.frame.push(node.frame);
            table.prefix.push(node.parent.checked_sub(1));
            table.length += 1;
            let weighs = node.own != Weight::default();
            if let Some(thread) = threads.get_mut(thread).filter(|_| weighs) {
                thread.add(number - 1, node.own);
            }
        }
        threads.retain(|thread| thread.samples.length > 0);
        threads.sort_by_key(|thread| std::cmp::Reverse(thread.whole.amount));
        for (thread, tid) in threads.iter_mut().zip(1..) {
            thread.tid = tid;
        }
        (table, threads)
    }

    /// Returns the tables that all threads share.
    fn shared(&self, stack_table: StackTable) -> SharedTables<'s> {
        let names = self.stacks.names();
        let rows = names.len();
        let mut texts = TextNumbers::default();
        let resources = CATEGORIES.iter().skip(1);
        let resources: Vec<u32> = resources.map(|(name, _)| texts.number(name)).collect();
        let func_names = names.iter().map(|name| texts.number(&name.text)).collect();
        let categories: Vec<u32> = names.iter().map(|name| category(name.part)).collect();
        SharedTables {
            stack_table,
            frame_table: FrameTable {
                address: SameRows(-1, rows),
                inline_depth: SameRows(0, rows),
                subcategory: SameRows(0, rows),
                func: (0..rows as u32).collect(),
                native_symbol: SameRows(None, rows),
                inner_window_id: SameRows(None, rows),
                line: SameRows(None, rows),
                column: SameRows(None, rows),
                length: rows,
                category: categories.clone(),
            },
            func_table: FuncTable {
                name: func_names,
                is_js: SameRows(false, rows),
                relevant_for_js: SameRows(false, rows),
                // -1 is none, of what is no code.
                resource: categories.iter().map(|one| i64::from(*one) - 1).collect(),
                source: SameRows(None, rows),
                line_number: SameRows(None, rows),
                column_number: SameRows(None, rows),
                length: rows,
            },
            resource_table: ResourceTable {
                lib: SameRows(None, resources.len()),
                host: SameRows(None, resources.len()),
                // `ResourceType::Library`.
                kind: SameRows(1, resources.len()),
                length: resources.len(),
                name: resources,
            },
            native_symbols: json!({"libIndex": [], "address": [], "name": [], "functionSize": [], "length": 0}),
            sources: json!({"uuid": [], "filename": [], "length": 0}),
            string_array: texts.texts,
        }
    }

    fn meta(&self, threads: usize) -> Value {
        let categories: Vec<Value> = CATEGORIES
            .iter()
            .map(
                |(name, colour)| json!({"name": name, "color": colour, "subcategories": ["Other"]}),
            )
            .collect();
        let comments: Vec<Value> = self
            .comments
            .iter()
            .map(|text| json!({"label": "Note", "format": "string", "value": text}))
            .collect();
        json!({
            "interval": 1,
            "startTime": 0,
            "processType": 0,
            "stackwalk": 1,
            "version": GECKO_VERSION,
            "preprocessedProfileVersion": VERSION,
            "product": format!("{} ({})", self.name, self.event),
            "importedFrom": "trapline",
            "categories": categories,
            "markerSchema": [],
            "symbolicated": true,
            "symbolicationNotSupported": true,
            "usesOnlyOneStackType": true,
            "sourceCodeIsNotOnSearchfox": true,
            "keepProfileThreadOrder": true,
            "initialVisibleThreads": (0..threads.min(VISIBLE)).collect::<Vec<_>>(),
            "initialSelectedThreads": (0..threads.min(1)).collect::<Vec<_>>(),
            "extra": [{"label": "What is shown", "entries": comments}],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stacks::FrameName;

    fn stacks() -> Stacks {
        let mut stacks = Stacks::new(16);
        for (frames, samples, amount) in [
            (&["sh", "read"][..], 1, 250),
            (&["vm", "run", "vmx_vcpu_run"], 3, 3_000_001),
            (&["vm", "run"], 2, 7),
        ] {
            let mut node = ROOT;
            for (text, part) in
                frames
                    .iter()
                    .zip([FrameOwner::Group, FrameOwner::Kernel, FrameOwner::Kvm])
            {
                let text = (*text).into();
                let name = stacks.number(FrameName { text, part });
                node = stacks.child(node, name).expect("there is room");
            }
            stacks.weigh(node, Weight { samples, amount });
        }
        stacks
    }

    fn written(nanoseconds: bool) -> Value {
        let profile = FirefoxProfile {
            stacks: &stacks(),
            event: "cpu-clock",
            nanoseconds,
            name: "a.data",
            comments: &["2 samples were lost".to_owned()],
        };
        let text = profile.encode().expect("JSON");
        serde_json::from_str(&text).expect("JSON")
    }

    #[test]
    fn threads_are_heaviest_first_and_their_samples_stand_one_behind_the_other() {
        let written = written(true);
        let threads = &written["threads"];
        assert_eq!(threads[0]["name"], "vm");
        assert_eq!(threads[1]["name"], "sh");
        let samples = &threads[0]["samples"];
        assert_eq!(samples["weightType"], "tracing-ms");
        // In milliseconds, in the order of the tree: what calls stands before what it called.
        assert_eq!(samples["weight"], json!([0.000007, 3.000001]));
        assert_eq!(samples["time"], json!([0.0, 0.000007]));
        let stacks = &written["shared"]["stackTable"];
        assert_eq!(stacks["prefix"], json!([null, 0, null, 2, 3]));
        assert_eq!(samples["stack"], json!([3, 4]));
    }

    #[test]
    fn counts_stay_counts_and_are_placed_by_their_samples() {
        let written = written(false);
        let samples = &written["threads"][0]["samples"];
        assert_eq!(samples["weightType"], "samples");
        assert_eq!(samples["weight"], json!([7, 3_000_001]));
        assert_eq!(samples["time"], json!([0.0, 2.0]));
    }

    #[test]
    fn functions_say_whose_code_they_are() {
        let written = written(true);
        let shared = &written["shared"];
        let text = |number: &Value| {
            let number = number.as_u64().expect("a number");
            shared["stringArray"][number as usize]
                .as_str()
                .expect("a text")
                .to_owned()
        };
        let names = shared["funcTable"]["name"].as_array().expect("a column");
        let names: Vec<String> = names.iter().map(text).collect();
        assert_eq!(names, ["sh", "read", "vm", "run", "vmx_vcpu_run"]);
        assert_eq!(shared["funcTable"]["resource"], json!([-1, 3, -1, 3, 4]));
        let resources = shared["resourceTable"]["name"]
            .as_array()
            .expect("a column");
        assert_eq!(
            [text(&resources[3]), text(&resources[4])],
            ["Kernel", "KVM"]
        );
        assert_eq!(shared["frameTable"]["category"], json!([0, 4, 0, 4, 5]));
        assert_eq!(written["meta"]["categories"][5]["name"], "KVM");
        assert_eq!(
            written["meta"]["extra"][0]["entries"][0]["value"],
            "2 samples were lost"
        );
    }
}
