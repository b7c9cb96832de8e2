//! Counts the kinds of damage in a dump, with the position of the first.

use std::collections::BTreeMap;

/// A kind of damage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Fault {
    /// A top-level record with an unknown tag.
    UnknownRecord,
    /// A name that is longer than a JVM allows.
    LongText,
    /// A segment without a length, or with an impossible one.
    Endless,
    /// A sub-record that is longer than the rest of its segment.
    Overrun,
    /// A sub-record with an unknown tag or an unknown type.
    UnknownSubRecord,
    /// An instance with more fields than a class can have.
    WideInstance,
    /// The file ends inside a record.
    Truncated,
}

/// Counts of faults.
#[derive(Clone, Debug, Default)]
pub(super) struct Faults {
    counts: BTreeMap<Fault, (u64, u64)>,
    unreadable: Option<String>,
}

impl Faults {
    /// Counts a fault at a position of the file.
    pub(super) fn add(&mut self, fault: Fault, at: u64) {
        self.counts.entry(fault).or_insert((0, at)).0 += 1;
    }

    /// From this position on the file cannot be read.
    pub(super) fn unreadable(&mut self, at: u64, reason: &str) {
        self.unreadable = Some(format!(
            "From byte {at} on the file cannot be read ({reason}): what stands before is shown."
        ));
    }

    /// Returns a sentence for each.
    pub(super) fn sentences(&self) -> Vec<String> {
        let mut sentences: Vec<String> =
            self.counts.iter().map(|(fault, (count, first))| sentence(*fault, *count, *first)).collect();
        sentences.extend(self.unreadable.clone());
        sentences
    }
}

fn sentence(fault: Fault, count: u64, first: u64) -> String {
    let (one, many, cure) = match fault {
        Fault::UnknownRecord => ("record has an unknown tag", "records have unknown tags", "passed over"),
        Fault::LongText => {
            ("name is longer than a name can be", "names are longer than a name can be", "shortened")
        }
        Fault::Endless => (
            "segment does not say where it ends",
            "segments do not say where they end",
            "read to the end of the file, as a writer leaves it that died or that wrote more than 4 GiB into one",
        ),
        Fault::Overrun => (
            "sub-record is longer than what is left of its segment",
            "sub-records are longer than what is left of their segments",
            "passed over with the rest of the segment",
        ),
        Fault::UnknownSubRecord => (
            "sub-record has an unknown tag or type",
            "sub-records have unknown tags or types",
            "passed over with the rest of the segment",
        ),
        Fault::WideInstance => (
            "object has more fields than a class can have",
            "objects have more fields than a class can have",
            "shown without references",
        ),
        Fault::Truncated => {
            return format!(
                "The file ends inside the record at byte {first}: it was cut, and what stands before is shown."
            );
        }
    };
    match count {
        1 => format!("1 {one} (byte {first}): {cure}."),
        _ => format!("{count} {many} (first: byte {first}): {cure}."),
    }
}
