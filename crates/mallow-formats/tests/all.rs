//! The tests of this crate in one program: it is linked once, and its tests share the cores.

mod allocator;
mod browser_exports;
mod cpu;
mod dhat;
mod dhat_accesses;
mod dhat_cut;
mod gperftools_heap;
mod heaptrack;
mod hprof;
mod jemalloc_heap;
mod massif;
mod oracles;
mod other_runtimes;
mod pprof;
mod speedscope;
mod stackdiff;
mod text_stacks;
mod v8_heap;
mod valgrind_files;
