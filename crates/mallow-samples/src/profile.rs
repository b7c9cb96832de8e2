//! Profiles written by hand, as real programs leave them, for the tests of what people see.

use mallow_base::Frame;
use mallow_profile::{
    Address, Availability, ByteAccesses, Exit, Location, LocationId, Process, ProcessIndex, Profile,
    Recording, Site, SiteTotals, StackId, StackNode, TimeUnit, Totals,
};
use mallow_view::Origin;

/// A frame from `function`, `function@file:line` or `function@module`.
fn frame(text: &str) -> Frame {
    let (function, place) = text.split_once('@').unwrap_or((text, "app"));
    match place.split_once(':') {
        Some((file, line)) => Frame {
            function: function.into(),
            file: Some(format!("/build/src/{file}")),
            line: line.parse().ok(),
            module: Some("/usr/bin/app".into()),
            ..Frame::default()
        },
        None => {
            Frame { function: function.into(), module: Some(format!("/usr/lib/{place}")), ..Frame::default() }
        }
    }
}

fn recorded(command: &[&str], duration_us: u64) -> Profile {
    let recording = Recording {
        command: command.iter().map(|word| (*word).to_owned()).collect(),
        duration_us,
        counting_version: 1,
        recorder_version: "0.1.0".into(),
        ..Recording::default()
    };
    Profile { recording, ..Profile::default() }
}

fn process(profile: &mut Profile, pid: u32, command: &str, exit: Exit) {
    let (command, exit) = (command.to_owned(), Some(exit));
    profile.processes.push(Process { pid, command, exit, peak_us: 870_000, ..Process::default() });
}

/// Metrics of a site: allocations, bytes, temporary, then bytes and blocks at the peak and leaked.
type Metrics = (u64, u64, u64, (u64, u64), (u64, u64));

/// Adds a site to the last process; frames leaf first.
fn site(profile: &mut Profile, stack: &[&str], metrics: Metrics) {
    let (allocations, bytes, temporary, (peak_bytes, peak_blocks), (leaked_bytes, leaked_blocks)) = metrics;
    let mut parent = None;
    for text in stack.iter().rev() {
        let location = LocationId(profile.stacks.locations.len() as u32);
        profile.stacks.locations.push(Location { address: Address::Unknown, frames: vec![frame(text)] });
        profile.stacks.nodes.push(StackNode { parent, location });
        parent = Some(StackId(profile.stacks.nodes.len() as u32 - 1));
    }
    let process = ProcessIndex(profile.processes.len() as u32 - 1);
    let duration_us = profile.recording.duration_us;
    let freed = allocations - leaked_blocks;
    let totals = SiteTotals {
        allocations,
        bytes,
        temporary,
        peak_bytes,
        peak_blocks,
        leaked_bytes,
        leaked_blocks,
        live_bytes_max: peak_bytes.max(leaked_bytes).max(bytes / allocations),
        live_blocks_at_max: peak_blocks.max(leaked_blocks).max(1),
        // What is freed lived for 13.4 µs, what leaked for half of the run.
        lifetime_us_sum: freed * 134 / 10 + leaked_blocks * duration_us / 2,
        first_us: duration_us / 100 * (profile.sites.len() as u64 + 1),
        last_us: if allocations == 1 {
            duration_us / 100 * (profile.sites.len() as u64 + 1)
        } else {
            duration_us / 10 * 9
        },
        ..SiteTotals::default()
    };
    profile.sites.push(Site { process, stack: parent, totals });
    let frees = allocations - leaked_blocks;
    let (reallocations, failed) = (0, 0);
    profile.processes[process.0 as usize].totals.add(&Totals {
        allocations,
        bytes,
        frees,
        reallocations,
        temporary,
        failed,
        peak_bytes,
        peak_blocks,
        leaked_bytes,
        leaked_blocks,
    });
}

const C_START: [&str; 3] = ["main@main.c:17", "__libc_start_call_main@libc.so.6", "_start@app"];

/// A C program that forgets the rows that it loads.
pub fn leaky_c() -> Profile {
    let mut profile = recorded(&["./app", "--rows", "37449", "data.csv"], 1_230_000);
    process(&mut profile, 4242, "./app --rows 37449 data.csv", Exit::Status(0));
    let with_start = |stack: &[&'static str]| [stack, &C_START].concat();
    let row = with_start(&["load_row@table.c:42", "load_table@table.c:77"]);
    site(&mut profile, &row, (37_449, 12_582_864, 0, (12_582_864, 37_449), (12_582_864, 37_449)));
    let field = with_start(&["strdup@libc.so.6", "load_field@table.c:31", "load_table@table.c:80"]);
    site(&mut profile, &field, (112_347, 1_797_552, 112_340, (16, 1), (112, 7)));
    let buffer = with_start(&["_IO_file_doallocate@libc.so.6", "getline@libc.so.6", "load_table@table.c:71"]);
    site(&mut profile, &buffer, (1, 4_096, 0, (4_096, 1), (0, 0)));
    let print = with_start(&["_IO_file_doallocate@libc.so.6", "printf@libc.so.6"]);
    site(&mut profile, &print, (1, 1_024, 0, (0, 0), (1_024, 1)));
    profile.processes[0].totals.reallocations = 12;
    profile.processes[0].totals.failed = 1;
    profile
}

const RUST_START: [&str; 6] = [
    "csv_aggregate::main@main.rs:12",
    "core::ops::function::FnOnce::call_once@function.rs:250",
    "std::sys::backtrace::__rust_begin_short_backtrace@backtrace.rs:152",
    "std::rt::lang_start::{{closure}}@rt.rs:206",
    "main@app",
    "_start@app",
];

/// A Rust program that makes a map for each row.
pub fn rust() -> Profile {
    let mut profile = recorded(&["target/release/csv-aggregate", "data.csv"], 98_000);
    process(&mut profile, 77, "target/release/csv-aggregate data.csv", Exit::Status(0));
    let with_start = |stack: &[&'static str]| [stack, &RUST_START].concat();
    let vec = with_start(&[
        "alloc::alloc::alloc@alloc.rs:95",
        "alloc::raw_vec::RawVec<T,A>::with_capacity_in@mod.rs:182",
        "<alloc::string::String as core::clone::Clone>::clone@string.rs:2340",
        "csv_aggregate::row::Row::from_record::h0123456789abcdef@row.rs:31",
        "csv_aggregate::aggregate::<std::fs::File>@aggregate.rs:58",
    ]);
    site(&mut profile, &vec, (224_694, 2_247_000, 187_245, (60, 6), (0, 0)));
    let map = with_start(&[
        "<alloc::alloc::Global as core::alloc::Allocator>::allocate@alloc.rs:241",
        "hashbrown::raw::RawTableInner::new_uninitialized@mod.rs:1534",
        "std::collections::hash::map::HashMap<K,V,S>::insert@map.rs:1201",
        "csv_aggregate::row::Row::from_record@row.rs:33",
        "csv_aggregate::aggregate::<std::fs::File>@aggregate.rs:58",
    ]);
    site(&mut profile, &map, (112_347, 23_592_870, 0, (212, 1), (0, 0)));
    let read = with_start(&[
        "__rustc::__rust_alloc@app",
        "alloc::vec::Vec<T,A>::reserve@mod.rs:1290",
        "<csv::reader::Reader<R> as core::iter::traits::iterator::Iterator>::next_with_a_name_that_goes_on@reader.rs:901",
    ]);
    site(&mut profile, &read, (37_489, 1_199_648, 37_449, (73_728, 2), (0, 0)));
    site(&mut profile, &["__rdl_alloc@app"], (1, 48, 0, (48, 1), (48, 1)));
    profile
}

/// A Python program that starts two children.
pub fn python() -> Profile {
    let mut profile =
        recorded(&["python3", "-c", "import json; print(json.dumps(list(range(100000))))"], 205_000);
    process(&mut profile, 900, "sh -c exec python3", Exit::Exec);
    site(
        &mut profile,
        &["xmalloc@sh", "savestring@sh", "0x3825d@sh"],
        (800, 40_000, 10, (30_000, 700), (30_000, 700)),
    );
    process(
        &mut profile,
        900,
        "python3 -c import json; print(json.dumps(list(range(100000))))",
        Exit::Status(0),
    );
    let object = [
        "_PyObject_Malloc@python3.11",
        "PyLong_FromLong@python3.11",
        "rangeiter_next@python3.11",
        "list_extend@python3.11",
    ];
    site(&mut profile, &object, (99_743, 3_191_776, 0, (3_191_776, 99_743), (0, 0)));
    let json = [
        "PyObject_Malloc@python3.11",
        "PyUnicode_New@python3.11",
        "encoder_listencode_obj@_json.cpython-311.so",
        "encoder_call@_json.cpython-311.so",
    ];
    site(&mut profile, &json, (100_003, 5_600_168, 99_990, (688_896, 3), (0, 0)));
    let arena = [
        "new_arena@python3.11",
        "pymalloc_alloc@python3.11",
        "_PyObject_Malloc@python3.11",
        "PyList_New@python3.11",
    ];
    site(&mut profile, &arena, (9, 9_437_184, 0, (9_437_184, 9), (1_048_576, 1)));
    for pid in [901, 902] {
        process(&mut profile, pid, "python3 worker.py", Exit::Signal(15));
        site(&mut profile, &object, (10, 320, 2, (320, 10), (320, 10)));
    }
    profile
}

/// A program that never allocates.
pub fn nothing() -> Profile {
    let mut profile = recorded(&["true"], 900);
    process(&mut profile, 5, "true", Exit::Status(0));
    profile
}

/// A program with deep stacks, by recursion and without.
pub fn deep() -> Profile {
    let mut profile = recorded(&["walk"], 1_500);
    process(&mut profile, 6, "walk", Exit::Status(0));
    let mut recursive = vec!["visit@walk.c:9"; 10_000];
    recursive.insert(0, "push@walk.c:3");
    recursive.extend(C_START);
    site(&mut profile, &recursive, (10, 2_000, 0, (2_000, 10), (0, 0)));
    let names: Vec<String> =
        (0..40).map(|level| format!("level_{level}@/usr/include/deep.c:{}", level + 1)).collect();
    let mut stack: Vec<&str> = names.iter().map(String::as_str).collect();
    stack.extend(C_START);
    site(&mut profile, &stack, (1, 1_000, 0, (1_000, 1), (0, 0)));
    profile
}

/// The C program as valgrind's DHAT sees it: times in instructions, nothing of temporary allocations.
pub fn dhat() -> Profile {
    let mut profile = leaky_c();
    profile.recording.counting_version = 0;
    profile.recording.recorder_version = String::new();
    profile.recording.time_unit = TimeUnit::Instructions;
    profile.known = Availability { calls: false, temporary: false, times: false, ..Availability::ALL };
    let process = &mut profile.processes[0];
    process.exit = None;
    let totals = &mut process.totals;
    (totals.frees, totals.reallocations, totals.temporary, totals.failed) = (0, 0, 0, 0);
    for site in &mut profile.sites {
        site.totals.temporary = 0;
    }
    profile
}

/// The same with reads and writes: rows of which two fields are used, text that is written once, and a buffer that nobody reads.
pub fn accessed() -> Profile {
    let mut profile = dhat();
    profile.known.accesses = true;
    for (number, site) in profile.sites.iter_mut().enumerate() {
        let bytes = site.totals.bytes;
        (site.totals.read_bytes, site.totals.written_bytes) = match number {
            0 => (bytes * 25, bytes / 4),
            1 => (bytes / 1000, bytes),
            2 => (0, 80),
            _ => (0, 0),
        };
        let runs = if number == 0 { Some([(4, 3), (4, 0), (328, 65_535)]) } else { None };
        let bytes = runs.and_then(ByteAccesses::of_runs);
        profile.accesses.add(site.process, site.stack, bytes);
    }
    profile
}

/// Adds a site of one block to the last process; frames leaf first.
pub fn site_of(profile: &mut Profile, stack: &[&str]) {
    site(profile, stack, (1, 8, 0, (8, 1), (0, 0)));
}

/// Where a trace of ours comes from.
pub const TRACE: Origin = Origin { word: "mallow", name: "mallow trace", is_trace: true };
/// Where DHAT's files come from.
pub const DHAT: Origin = Origin { word: "dhat", name: "DHAT file", is_trace: false };
/// Where folded stacks come from.
pub const FOLDED: Origin = Origin { word: "folded", name: "file of folded stacks", is_trace: false };
