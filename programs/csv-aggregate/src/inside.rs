//! The program profiled from inside, under the feature `mallow`; under `dhat` by dhat-rs, which is measured beside it.

/// What ends the profile when it is dropped.
#[must_use]
pub struct Profile {
    #[cfg(feature = "mallow")]
    _mallow: mallow_alloc::Profile,
    #[cfg(feature = "dhat")]
    _dhat: dhat::Profiler,
}

#[cfg(feature = "mallow")]
#[global_allocator]
static ALLOC: mallow_alloc::Mallow<std::alloc::System> = mallow_alloc::Mallow::new(std::alloc::System);

#[cfg(feature = "dhat")]
#[global_allocator]
static ALLOC: dhat::Alloc = dhat::Alloc;

/// Begins a profile in the folder in which the program runs, if it was built for one: `inside.mallow`, or `inside.json` for DHAT's viewer
/// where `INSIDE_DHAT` is set.
pub fn profile() -> Profile {
    Profile {
        #[cfg(feature = "mallow")]
        _mallow: mallow(),
        #[cfg(feature = "dhat")]
        _dhat: dhat::Profiler::new_heap(),
    }
}

#[cfg(feature = "mallow")]
fn mallow() -> mallow_alloc::Profile {
    let dhat = || mallow_alloc::builder("inside.json").format(mallow_alloc::Format::Dhat).begin();
    match std::env::var_os("INSIDE_DHAT") {
        None => mallow_alloc::profile("inside.mallow"),
        Some(_) => dhat().expect("a profile can begin"),
    }
}
