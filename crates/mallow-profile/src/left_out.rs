//! What a format cannot hold, told once for every export.

use crate::Profile;

/// A sentence about metrics of the profile that are none of `held`; none when nothing is left out. The words of `held` are those of
/// the table below.
pub fn sentence(profile: &Profile, format: &str, held: &[&str]) -> Option<String> {
    let known = &profile.known;
    let times = "first and last times";
    let all = [
        ("allocations", known.allocations || known.bytes),
        ("reallocations and failed calls", known.calls),
        ("temporary", known.temporary),
        ("peak", known.peak),
        ("leaked", known.leaked),
        ("own maxima", known.own_maximum),
        ("lifetimes", known.lifetimes),
        (times, known.times),
        ("reads and writes", known.accesses),
        ("threads", profile.processes.iter().any(|process| !process.threads.is_empty())),
        ("resident memory", profile.processes.iter().any(|process| !process.samples.is_empty())),
    ];
    let missing: Vec<&str> = all
        .into_iter()
        .filter(|(word, is_there)| *is_there && !held.contains(word))
        .map(|(word, _)| word)
        .collect();
    (!missing.is_empty())
        .then(|| format!("{format} has no place for these and they are left out: {}", missing.join(", ")))
}
