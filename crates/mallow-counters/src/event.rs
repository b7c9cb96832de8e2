//! Events by perf's names.

use perf_event_open_sys::bindings as sys;

/// Something that can be counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    pub(crate) name: String,
    pub(crate) kind: u32,
    pub(crate) config: u64,
    /// Only what happens in the program, not in the kernel for it: `:u`.
    pub(crate) user_only: bool,
    /// Only what happens in the kernel: `:k`.
    pub(crate) kernel_only: bool,
}

/// What is counted when nobody asks for anything else.
pub const DEFAULT_EVENTS: [&str; 6] =
    ["cycles", "instructions", "branches", "branch-misses", "cache-references", "cache-misses"];

/// A name, a second name or none, the type and the number.
type EventRow = (&'static str, &'static str, u32, u32);

const HARDWARE: u32 = sys::PERF_TYPE_HARDWARE;
const SOFTWARE: u32 = sys::PERF_TYPE_SOFTWARE;

/// As `perf list` has them.
const KNOWN: [EventRow; 20] = [
    ("cycles", "cpu-cycles", HARDWARE, sys::PERF_COUNT_HW_CPU_CYCLES),
    ("instructions", "", HARDWARE, sys::PERF_COUNT_HW_INSTRUCTIONS),
    ("cache-references", "", HARDWARE, sys::PERF_COUNT_HW_CACHE_REFERENCES),
    ("cache-misses", "", HARDWARE, sys::PERF_COUNT_HW_CACHE_MISSES),
    ("branches", "branch-instructions", HARDWARE, sys::PERF_COUNT_HW_BRANCH_INSTRUCTIONS),
    ("branch-misses", "", HARDWARE, sys::PERF_COUNT_HW_BRANCH_MISSES),
    ("bus-cycles", "", HARDWARE, sys::PERF_COUNT_HW_BUS_CYCLES),
    ("stalled-cycles-frontend", "idle-cycles-frontend", HARDWARE, sys::PERF_COUNT_HW_STALLED_CYCLES_FRONTEND),
    ("stalled-cycles-backend", "idle-cycles-backend", HARDWARE, sys::PERF_COUNT_HW_STALLED_CYCLES_BACKEND),
    ("ref-cycles", "", HARDWARE, sys::PERF_COUNT_HW_REF_CPU_CYCLES),
    ("task-clock", "", SOFTWARE, sys::PERF_COUNT_SW_TASK_CLOCK),
    ("cpu-clock", "", SOFTWARE, sys::PERF_COUNT_SW_CPU_CLOCK),
    ("page-faults", "faults", SOFTWARE, sys::PERF_COUNT_SW_PAGE_FAULTS),
    ("minor-faults", "", SOFTWARE, sys::PERF_COUNT_SW_PAGE_FAULTS_MIN),
    ("major-faults", "", SOFTWARE, sys::PERF_COUNT_SW_PAGE_FAULTS_MAJ),
    ("context-switches", "cs", SOFTWARE, sys::PERF_COUNT_SW_CONTEXT_SWITCHES),
    ("cpu-migrations", "migrations", SOFTWARE, sys::PERF_COUNT_SW_CPU_MIGRATIONS),
    ("alignment-faults", "", SOFTWARE, sys::PERF_COUNT_SW_ALIGNMENT_FAULTS),
    ("emulation-faults", "", SOFTWARE, sys::PERF_COUNT_SW_EMULATION_FAULTS),
    ("cgroup-switches", "", SOFTWARE, sys::PERF_COUNT_SW_CGROUP_SWITCHES),
];

/// Caches, and what of them can be counted.
const CACHES: [(&str, u32); 7] = [
    ("L1-dcache", sys::PERF_COUNT_HW_CACHE_L1D),
    ("L1-icache", sys::PERF_COUNT_HW_CACHE_L1I),
    ("LLC", sys::PERF_COUNT_HW_CACHE_LL),
    ("dTLB", sys::PERF_COUNT_HW_CACHE_DTLB),
    ("iTLB", sys::PERF_COUNT_HW_CACHE_ITLB),
    ("branch", sys::PERF_COUNT_HW_CACHE_BPU),
    ("node", sys::PERF_COUNT_HW_CACHE_NODE),
];
const OPERATIONS: [(&str, u32, u32); 6] = [
    ("loads", sys::PERF_COUNT_HW_CACHE_OP_READ, sys::PERF_COUNT_HW_CACHE_RESULT_ACCESS),
    ("load-misses", sys::PERF_COUNT_HW_CACHE_OP_READ, sys::PERF_COUNT_HW_CACHE_RESULT_MISS),
    ("stores", sys::PERF_COUNT_HW_CACHE_OP_WRITE, sys::PERF_COUNT_HW_CACHE_RESULT_ACCESS),
    ("store-misses", sys::PERF_COUNT_HW_CACHE_OP_WRITE, sys::PERF_COUNT_HW_CACHE_RESULT_MISS),
    ("prefetches", sys::PERF_COUNT_HW_CACHE_OP_PREFETCH, sys::PERF_COUNT_HW_CACHE_RESULT_ACCESS),
    ("prefetch-misses", sys::PERF_COUNT_HW_CACHE_OP_PREFETCH, sys::PERF_COUNT_HW_CACHE_RESULT_MISS),
];

impl Event {
    /// The event of a name of perf's, such as `cycles`, `instructions:u`, `LLC-load-misses` or `r01c2`.
    ///
    /// # Errors
    /// A sentence without its end when there is no such event.
    pub fn named(text: &str) -> Result<Event, String> {
        let (name, modifiers) = text.split_once(':').unwrap_or((text, ""));
        if !modifiers.chars().all(|letter| "uk".contains(letter)) {
            return Err(format!(
                "`:{modifiers}` in `{text}` is unknown; :u counts the program and :k the kernel"
            ));
        }
        let Some((kind, config)) = Event::known(name).or_else(|| cache(name)).or_else(|| raw(name)) else {
            let names: Vec<&str> = KNOWN.iter().map(|known| known.0).collect();
            return Err(format!(
                "`{text}` is no event; use {}, a cache event such as LLC-load-misses, or a raw one such as r01c2",
                names.join(", ")
            ));
        };
        let (user, kernel) = (modifiers.contains('u'), modifiers.contains('k'));
        Ok(Event {
            name: text.to_owned(),
            kind,
            config,
            user_only: user && !kernel,
            kernel_only: kernel && !user,
        })
    }

    fn known(name: &str) -> Option<(u32, u64)> {
        let known = KNOWN.iter().find(|known| known.0 == name || (known.1 == name && !name.is_empty()))?;
        Some((known.2, u64::from(known.3)))
    }

    /// Its name, as it was typed.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The kernel's type and number of it.
    pub fn kind_and_config(&self) -> (u32, u64) {
        (self.kind, self.config)
    }

    /// Returns whether only what happens in the program is wanted.
    pub fn is_user_only(&self) -> bool {
        self.user_only
    }

    /// Returns whether only what happens in the kernel is wanted.
    pub fn is_kernel_only(&self) -> bool {
        self.kernel_only
    }

    /// Returns whether it counts nanoseconds.
    pub fn is_time(&self) -> bool {
        self.kind == SOFTWARE
            && [sys::PERF_COUNT_SW_TASK_CLOCK, sys::PERF_COUNT_SW_CPU_CLOCK]
                .map(u64::from)
                .contains(&self.config)
    }

    /// Returns whether it only ever happens in the kernel, so that whoever may not look into it counts nothing.
    pub fn is_of_scheduler(&self) -> bool {
        const OF_SCHEDULER: [u32; 3] = [
            sys::PERF_COUNT_SW_CONTEXT_SWITCHES,
            sys::PERF_COUNT_SW_CPU_MIGRATIONS,
            sys::PERF_COUNT_SW_CGROUP_SWITCHES,
        ];
        self.kind == SOFTWARE && OF_SCHEDULER.map(u64::from).contains(&self.config)
    }

    /// Returns whether the processor counts it, and not the kernel.
    pub fn is_hardware(&self) -> bool {
        self.kind != SOFTWARE
    }
}

fn cache(name: &str) -> Option<(u32, u64)> {
    let (cache, rest) = CACHES.iter().find_map(|(word, cache)| Some((cache, name.strip_prefix(word)?)))?;
    let operation = rest.strip_prefix('-')?;
    let (_, operation, result) = OPERATIONS.iter().find(|known| known.0 == operation)?;
    Some((sys::PERF_TYPE_HW_CACHE, u64::from(cache | operation << 8 | result << 16)))
}

/// `r` and hexadecimal digits: the processor's own number.
fn raw(name: &str) -> Option<(u32, u64)> {
    let digits = name.strip_prefix('r').filter(|digits| digits.len() >= 2)?;
    Some((sys::PERF_TYPE_RAW, u64::from_str_radix(digits, 16).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(name: &str) -> (u32, u64) {
        let event = Event::named(name).unwrap();
        (event.kind, event.config)
    }

    #[test]
    fn names_are_those_of_perf() {
        assert_eq!(numbers("cycles"), (0, 0));
        assert_eq!(numbers("cpu-cycles"), numbers("cycles"));
        assert_eq!(numbers("instructions:u"), (0, 1));
        assert_eq!(numbers("faults"), (1, 2));
        assert_eq!(numbers("cs"), numbers("context-switches"));
        assert_eq!(numbers("LLC-load-misses"), (3, 0x1_0002));
        assert_eq!(numbers("dTLB-stores"), (3, 0x0103));
        assert_eq!(numbers("r01c2"), (4, 0x1c2));
    }

    #[test]
    fn modifiers_say_where() {
        let event = |name| Event::named(name).unwrap();
        assert!(event("cycles:u").user_only && !event("cycles:u").kernel_only);
        assert!(event("cycles:k").kernel_only);
        assert!(!event("cycles:uk").user_only && !event("cycles:uk").kernel_only);
        assert_eq!(event("cycles:u").name(), "cycles:u");
    }

    #[test]
    fn clocks_are_time_and_switches_are_the_kernels() {
        let event = |name| Event::named(name).unwrap();
        assert!(event("cpu-clock").is_time() && event("task-clock:u").is_time());
        assert!(
            !event("page-faults").is_time() && !event("cycles").is_time() && !event("instructions").is_time()
        );
        assert!(event("cs").is_of_scheduler() && event("migrations").is_of_scheduler());
        // The same numbers mean something else where hardware counts.
        assert!(!event("cache-misses").is_of_scheduler() && !event("page-faults").is_of_scheduler());
    }

    #[test]
    fn what_is_no_event_is_refused_with_those_that_are() {
        for name in ["cycle", "", "LLC-", "LLC-loadmisses", "r", "rzz", "cycles:x"] {
            assert!(Event::named(name).is_err(), "{name}");
        }
        let refused = Event::named("cycle").unwrap_err();
        assert!(refused.starts_with("`cycle` is no event; use cycles, instructions"), "{refused}");
    }
}
