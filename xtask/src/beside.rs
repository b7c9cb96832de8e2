//! Two things at once: one waits for a network, a disk or other programs, the other one needs the processors.

/// What else is done while tests are built and run.
pub(crate) struct Beside<'a> {
    /// While the test programs are built. They run after it.
    pub(crate) build: &'a (dyn Fn() -> Result<(), String> + Sync),
    /// While the end-to-end tests wait for other programs.
    pub(crate) tests: &'a (dyn Fn() -> Result<(), String> + Sync),
}

impl Beside<'_> {
    /// Nothing else.
    pub(crate) const NOTHING: Beside<'static> = Beside { build: &|| Ok(()), tests: &|| Ok(()) };
}

/// Does two things at once, and waits for both. If both fail, the sentence is that of `one`.
pub(crate) fn side_by_side<T>(
    one: impl FnOnce() -> Result<T, String>,
    other: impl FnOnce() -> Result<(), String> + Send,
) -> Result<T, String> {
    std::thread::scope(|scope| {
        let other = scope.spawn(other);
        let one = one();
        let other = other.join().unwrap_or_else(|_| Err("what ran beside it panicked.".to_owned()));
        one.and_then(|one| other.map(|()| one))
    })
}
