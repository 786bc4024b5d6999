//! Runs the committed programs in an interpreter, with maps and helpers that do what the kernel's do.
#![allow(
    unsafe_code,
    reason = "programs hand over addresses, which the kernel's verifier has checked where they run in earnest"
)]
#![allow(
    clippy::cast_possible_truncation,
    reason = "numbers of maps, lengths and halves of addresses that a program of 64 bits hands over"
)]

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap, HashSet};

use aya_obj::Object;

use crate::raw::{ROWS_AT_ONCE, RawLayout, RawVcpu};

/// Where and as whom a program runs.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RunningTask {
    pub(crate) tid: u32,
    pub(crate) tgid: u32,
    pub(crate) cpu: u32,
    pub(crate) now_ns: u64,
}

/// A map: values have addresses that stay.
struct InterpreterMap {
    key_bytes: usize,
    value_bytes: usize,
    most: usize,
    values: BTreeMap<Vec<u8>, Box<[u64]>>,
}

#[derive(Default)]
struct World {
    task: RunningTask,
    maps: Vec<InterpreterMap>,
}

/// Elements that a map has at most: recordings need no more, and all of an array are made.
const MOST: usize = 1024;
/// Kinds of maps (`enum bpf_map_type`).
const ARRAY: u32 = 2;
const PER_CPU_ARRAY: u32 = 6;
const STACK: u32 = 23;

thread_local! {
    /// Helpers are plain functions, so what they work on is found here.
    static WORLD: RefCell<World> = RefCell::default();
}

/// Copies what a program points to.
fn bytes(address: u64, len: usize) -> Vec<u8> {
    // SAFETY: the program was checked by the kernel's verifier where it runs in earnest (`live::tests`), and hands over
    // a pointer to as many bytes as the map's definition says.
    unsafe { std::slice::from_raw_parts(address as *const u8, len) }.to_vec()
}

fn words(bytes: &[u8]) -> Box<[u64]> {
    let words = bytes.chunks(8).map(|chunk| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        u64::from_ne_bytes(word)
    });
    words.collect()
}

fn lookup(map: u64, key: u64, _: u64, _: u64, _: u64) -> u64 {
    WORLD.with_borrow_mut(|world| {
        let map = &mut world.maps[map as usize];
        let key = bytes(key, map.key_bytes);
        map.values
            .get_mut(&key)
            .map_or(0, |value| value.as_mut_ptr() as u64)
    })
}

fn update(map: u64, key: u64, value: u64, flags: u64, _: u64) -> u64 {
    const NO_EXIST: u64 = 1;
    WORLD.with_borrow_mut(|world| {
        let map = &mut world.maps[map as usize];
        let key = bytes(key, map.key_bytes);
        let value = words(&bytes(value, map.value_bytes));
        let full = map.values.len() >= map.most;
        match map.values.get_mut(&key) {
            Some(_) if flags == NO_EXIST => u64::MAX,
            Some(old) => {
                old.copy_from_slice(&value);
                0
            }
            None if full => u64::MAX,
            None => {
                map.values.insert(key, value);
                0
            }
        }
    })
}

fn pop(map: u64, to: u64, _: u64, _: u64, _: u64) -> u64 {
    WORLD.with_borrow_mut(|world| {
        let map = &mut world.maps[map as usize];
        let Some((_, value)) = map.values.pop_first() else {
            return u64::MAX;
        };
        // SAFETY: as in `bytes`.
        unsafe { (to as *mut u32).write_unaligned(value[0] as u32) };
        0
    })
}

fn now(_: u64, _: u64, _: u64, _: u64, _: u64) -> u64 {
    WORLD.with_borrow(|world| world.task.now_ns)
}

fn cpu(_: u64, _: u64, _: u64, _: u64, _: u64) -> u64 {
    WORLD.with_borrow(|world| world.task.cpu.into())
}

fn pid_tgid(_: u64, _: u64, _: u64, _: u64, _: u64) -> u64 {
    WORLD.with_borrow(|world| u64::from(world.task.tgid) << 32 | u64::from(world.task.tid))
}

fn probe_read(to: u64, size: u64, from: u64, _: u64, _: u64) -> u64 {
    // SAFETY: as in `bytes`; both do not overlap, since one is the program's own.
    unsafe { std::ptr::copy_nonoverlapping(from as *const u8, to as *mut u8, size as usize) };
    0
}

/// What stands in for the kernel.
pub(crate) struct Kernel {
    programs: HashMap<String, Vec<u8>>,
    names: Vec<String>,
    /// The programs' constants, to which they have pointers.
    _constants: Box<[u64]>,
}

impl Kernel {
    /// Loads the programs.
    pub(crate) fn new(object: &[u8], layout: &RawLayout, most: &[(&str, usize)]) -> Kernel {
        let mut object = Object::parse(object).expect("the committed object is one");
        let layout = aya_bytes(layout);
        let globals = HashMap::from([("layout", (layout, true))]);
        object.patch_map_data(globals).expect("it has a layout");
        let constants = words(object.maps[".rodata"].data());
        let mut names: Vec<String> = object.maps.keys().cloned().collect();
        names.sort();
        let maps = names.iter().map(|name| {
            let map = &object.maps[name];
            let most = most.iter().find(|(of, _)| of == name);
            let limit = match name.as_str() {
                "free_rows" => MOST / ROWS_AT_ONCE as usize,
                _ => MOST,
            };
            InterpreterMap {
                key_bytes: map.key_size() as usize,
                value_bytes: map.value_size() as usize,
                most: most.map_or((map.max_entries() as usize).min(limit), |(_, most)| *most),
                values: BTreeMap::new(),
            }
        });
        let mut maps: Vec<InterpreterMap> = maps.collect();
        for (map, name) in maps.iter_mut().zip(&names) {
            // Arrays have all their elements from the beginning, and user space puts all places on stacks.
            let kind = object.maps[name].map_type();
            for key in 0..map.most as u32 {
                let value = match kind {
                    ARRAY | PER_CPU_ARRAY => vec![0; map.value_bytes.div_ceil(8)],
                    STACK if name == "free_rows" => vec![u64::from(key * ROWS_AT_ONCE)],
                    STACK => vec![key.into()],
                    _ => break,
                };
                let value = value.into_boxed_slice();
                map.values.insert(key.to_ne_bytes().to_vec(), value);
            }
        }
        WORLD.set(World {
            task: RunningTask::default(),
            maps,
        });
        let text: HashSet<usize> = object
            .functions
            .keys()
            .map(|(section, _)| *section)
            .collect();
        let relocated = object.maps.clone();
        let numbers = names.iter().zip(0i32..);
        let numbers = numbers.map(|(name, number)| (name.as_str(), number, &relocated[name]));
        object
            .relocate_maps(numbers, &text)
            .expect("maps are found");
        object.relocate_calls(&text).expect("functions are found");
        let programs = object.programs.iter().map(|(name, program)| {
            let function = &object.functions[&program.function_key()];
            let code = function.instructions.iter().flat_map(|instruction| {
                let registers = instruction.dst_reg() | instruction.src_reg() << 4;
                let [off0, off1] = instruction.off.to_le_bytes();
                let [a, b, c, d] = instruction.imm.to_le_bytes();
                [instruction.code, registers, off0, off1, a, b, c, d]
            });
            (name.clone(), with_addresses(code.collect(), &constants))
        });
        Kernel {
            programs: programs.collect(),
            names,
            _constants: constants,
        }
    }

    /// Runs a program, and returns what it returns.
    pub(crate) fn run(&mut self, name: &str, task: RunningTask, context: &[u8]) -> u64 {
        WORLD.with_borrow_mut(|world| world.task = task);
        let mut vm = rbpf::EbpfVmRaw::new(Some(&self.programs[name])).expect("it is a program");
        let helpers: [(u32, rbpf::ebpf::Helper); 7] = [
            (1, lookup),
            (2, update),
            (5, now),
            (8, cpu),
            (14, pid_tgid),
            (88, pop),
            (113, probe_read),
        ];
        // A quarter of 512 bytes for each function: as much as the kernel allows in all, for calls as deep as there
        // are.
        vm.set_stack_usage_calculator(|_, _, _| 128, Box::new(()))
            .expect("functions are found");
        for (number, helper) in helpers {
            vm.register_helper(number, helper)
                .expect("it has a number of its own");
        }
        // What is in reach of each pointer is for the kernel's verifier to say.
        vm.register_allowed_memory(0..u64::MAX);
        // The kernel's records have room behind them.
        let mut context = context.to_vec();
        context.resize(context.len() + 64, 0);
        vm.execute_program(&mut context)
            .expect("it runs to its end")
    }

    /// Follows a thread, as `Places::put` does.
    pub(crate) fn follow(&mut self, mut vcpu: RawVcpu) {
        let number = |of: &str| self.names.iter().position(|name| name == of);
        let [vcpus, slots, free] =
            ["vcpus", "slots", "free_vcpus"].map(|name| number(name).expect("it is a map"));
        WORLD.with_borrow_mut(|world| {
            let (slot, _) = world.maps[free].values.pop_first().expect("there is room");
            vcpu.slot = read(&slot);
            let mut put = |map: usize, key: &[u8], value: &[u8]| {
                world.maps[map].values.insert(key.to_vec(), words(value));
            };
            put(vcpus, &slot, aya_bytes(&vcpu));
            put(slots, aya_bytes(&vcpu.tid), &slot);
        });
    }

    /// Returns the keys and values of a map.
    pub(crate) fn map(&self, name: &str) -> Vec<(Vec<u8>, Vec<u8>)> {
        let number = self.names.iter().position(|of| of == name);
        WORLD.with_borrow(|world| {
            let map = &world.maps[number.expect("it is a map")];
            let values = map.values.iter().map(|(key, value)| {
                let bytes: Vec<u8> = value.iter().flat_map(|word| word.to_ne_bytes()).collect();
                (key.clone(), bytes[..map.value_bytes].to_vec())
            });
            values.collect()
        })
    }
}

/// Puts the address of the constants where a program refers to them, and numbers where it refers to maps.
fn with_addresses(mut code: Vec<u8>, constants: &[u64]) -> Vec<u8> {
    const LOAD_64: u8 = 0x18;
    const VALUE_OF_MAP: u8 = 2;
    let mut at = 0;
    while at < code.len() {
        if code[at] != LOAD_64 {
            at += 8;
            continue;
        }
        let kind = code[at + 1] >> 4;
        if kind == VALUE_OF_MAP {
            let offset = u32::from_le_bytes(code[at + 12..at + 16].try_into().expect("4 bytes"));
            let address = constants.as_ptr() as u64 + u64::from(offset);
            let [low, high] = [address as u32, (address >> 32) as u32];
            code[at + 4..at + 8].copy_from_slice(&low.to_le_bytes());
            code[at + 12..at + 16].copy_from_slice(&high.to_le_bytes());
        }
        code[at + 1] &= 0xf;
        at += 16;
    }
    code
}

fn aya_bytes<T: aya::Pod>(value: &T) -> &[u8] {
    // SAFETY: Pod says that it is bytes without padding.
    unsafe { std::slice::from_raw_parts((value as *const T).cast(), size_of::<T>()) }
}

/// Reads a struct of the programs out of bytes.
pub(crate) fn read<T: aya::Pod>(bytes: &[u8]) -> T {
    assert_eq!(bytes.len(), size_of::<T>(), "bpf/state.h and raw.rs agree");
    // SAFETY: Pod says that any bytes are a value, and there are as many as it has.
    unsafe { std::ptr::read_unaligned(bytes.as_ptr().cast()) }
}
