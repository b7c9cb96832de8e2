//! The targets, by what they read.

mod canary;
mod check_files;
mod heaps;
mod load_lists;
mod modules;
mod profiles;
mod said;
mod texts;
mod trace;

pub(crate) use canary::canary;

use crate::Target;
use mallow_formats::Format;
use profiles::{import, rewritten, same_sums};

/// Every parser's target.
pub const TARGETS: &[Target] = &[
    Target { name: "allocator_state", run: texts::allocator_state },
    Target { name: "bpftrace", run: |data| import(data, Format::Bpftrace) },
    Target { name: "check_files", run: check_files::check_files },
    Target { name: "dhat", run: same_sums::dhat },
    Target { name: "dtrace", run: |data| import(data, Format::Dtrace) },
    Target { name: "elf", run: modules::elf },
    Target { name: "folded", run: |data| import(data, Format::Folded) },
    Target { name: "gc_log", run: texts::gc_log },
    Target { name: "gperftools_heap", run: rewritten::gperftools_heap },
    Target { name: "heap_ruby", run: |data| heaps::snapshot(data, Format::RubyHeap) },
    Target { name: "heap_hprof", run: |data| heaps::snapshot(data, Format::Hprof) },
    Target { name: "heap_python", run: |data| heaps::snapshot(data, Format::PythonHeap) },
    Target { name: "heap_v8", run: |data| heaps::snapshot(data, Format::V8Heap) },
    Target { name: "heaptrack", run: |data| import(data, Format::Heaptrack) },
    Target { name: "heaptrack_print", run: |data| import(data, Format::HeaptrackPrint) },
    Target { name: "jemalloc_heap", run: rewritten::jemalloc_heap },
    Target { name: "jitdump", run: |data| drop(mallow_jit::jitdump::of_bytes(data)) },
    Target { name: "load_flow", run: load_lists::flow },
    Target { name: "load_log", run: load_lists::access_log },
    Target { name: "load_outside", run: load_lists::outside },
    Target { name: "load_urls", run: load_lists::urls },
    Target { name: "lookup_answer", run: modules::lookup_answer },
    Target { name: "massif", run: same_sums::massif },
    Target { name: "memcheck_xml", run: |data| import(data, Format::MemcheckXml) },
    Target { name: "perf_data", run: |data| profiles::of_time(data, Format::PerfData) },
    Target { name: "perf_map", run: |data| drop(mallow_jit::CodeNames::of_map(data)) },
    Target { name: "perf_script", run: |data| profiles::of_time(data, Format::PerfScript) },
    Target { name: "pprof", run: rewritten::pprof },
    Target { name: "stackdiff", run: texts::stackdiff },
    Target { name: "suppressions", run: modules::suppressions },
    Target { name: "trace_analyses", run: trace::analyses },
    Target { name: "trace_chunks", run: trace::chunks },
    Target { name: "trace_reader", run: trace::reader },
];
