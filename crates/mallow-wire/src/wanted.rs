//! What a session wants of the recorder: its mode, what is wanted beside the heap, and the environment variables that say so.

/// What the recorder was asked to do. In the header's `mode`.
pub const MODE_RECORD: u32 = 1;
/// Counters in the channels, no rings, no stacks. In the header's `mode`.
pub const MODE_STAT: u32 = 2;

/// In the header's `features`: the program's marks are wanted, and answered.
pub const FEATURE_MARKS: u32 = 1;
/// In the header's `features`: opened file descriptors are wanted.
pub const FEATURE_DESCRIPTORS: u32 = 2;
/// In the header's `features`: a thread in the process that can ask its allocator for things, the helper thread.
pub const FEATURE_HELPER_THREAD: u32 = 4;
/// In the header's `features`: a runtime that makes code is asked to write down what it is.
pub const FEATURE_RUNTIMES: u32 = 8;
/// In the header's `features`: what Python's own allocator hands out is wanted.
pub const FEATURE_PYTHON_OBJECTS: u32 = 16;
/// In the header's `features`: what the program maps itself is wanted.
pub const FEATURE_MAPPINGS: u32 = 32;

/// The environment variable that carries the mode and options to the recorder: `record`, `stat`, `check`, which
/// is `record` with marks and descriptors, or `soak`, which is `record` with a helper thread.
pub const MODE_VARIABLE: &str = "MALLOW_MODE";

/// With this environment variable runtimes are not asked for anything.
pub const RUNTIMES_VARIABLE: &str = "MALLOW_NO_RUNTIME_FLAGS";

/// With this environment variable what Python's own allocator hands out is recorded.
pub const PYTHON_OBJECTS_VARIABLE: &str = "MALLOW_PYTHON_OBJECTS";

/// With this environment variable what the program maps itself (`mmap`) is recorded.
pub const MAPPINGS_VARIABLE: &str = "MALLOW_MAPPINGS";

/// With this environment variable recording begins at a time: in nanoseconds of the monotonic clock, the number of the time namespace of that clock, and in
/// nanoseconds since 1970, with colons between.
pub const BEGIN_VARIABLE: &str = "MALLOW_BEGIN_NS";

/// In the header's `python_objects`: what Python's allocator hands out is recorded.
pub const PYTHON_OBJECTS_COUNTED: u32 = 1;
/// In the header's `python_objects`: it is not, because the environment chooses an allocator.
pub const PYTHON_OBJECTS_ELSEWHERE: u32 = 2;
