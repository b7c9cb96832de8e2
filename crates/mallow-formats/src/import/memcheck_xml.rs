//! The leaks that Valgrind's memcheck found, in XML (`--leak-check=full --xml=yes`).
//!
//! Each `<error>` whose kind begins with `Leak_` is a stack with the blocks that were live at the end and had been
//! allocated there. memcheck also decides whether a pointer to them was left; a profile has no place for that, so it
//! goes into the warnings and into the recording's environment, and all of these blocks count as leaked. The bytes of
//! a definitely lost record include those that were only reachable through it; they have records of their own (with
//! `--show-leak-kinds=all`), so they are subtracted. Source: `docs/internals/xml-output-protocol4.txt` of Valgrind,
//! and its files, see `fixtures/memcheck`.

mod errors;

use super::text_stacks::named;
use crate::source::Source;
use crate::{Format, ImportError, Imported};
use errors::{Document, Leak, Raw};
use mallow_base::Frame;
use mallow_profile::{
    Address, Availability, LocationId, Process, ProfileBuilder, Recording, SiteTotals, Totals,
};

const KNOWN: Availability = Availability { leaked: true, leaked_blocks: true, ..Availability::NOTHING };

/// memcheck's kinds of leaks: the word in the file, and in our words.
const KINDS: [(&str, &str); 4] = [
    ("Leak_DefinitelyLost", "definitely lost"),
    ("Leak_IndirectlyLost", "indirectly lost"),
    ("Leak_PossiblyLost", "possibly lost"),
    ("Leak_StillReachable", "still reachable"),
];

/// Parses the leaks.
pub(super) fn read(source: Source<'_>) -> Result<Imported, ImportError> {
    let bytes = source.whole(Format::MemcheckXml)?;
    let document = errors::document(&bytes)?;
    let recording = Recording { command: document.command.clone(), ..Recording::default() };
    let mut builder = ProfileBuilder::new(recording, KNOWN);
    let command = document.command.join(" ");
    let process = builder.add_process(Process {
        pid: document.pid,
        parent_pid: document.parent_pid,
        command,
        ..Process::default()
    });
    let mut sum = Totals::default();
    for leak in &document.leaks {
        let totals = SiteTotals {
            leaked_bytes: leak.direct_bytes(),
            leaked_blocks: leak.blocks,
            ..SiteTotals::default()
        };
        let locations: Vec<LocationId> = locations(&mut builder, &leak.frames);
        let stack = builder.stack(locations.into_iter().rev());
        builder.add_site(process, stack, &totals);
        let of_leak = Totals {
            leaked_bytes: totals.leaked_bytes,
            leaked_blocks: totals.leaked_blocks,
            ..Totals::default()
        };
        sum.add(&of_leak);
    }
    builder.process(process).totals = sum;
    let warnings = judge(&document, &mut builder);
    Ok(Imported { profile: builder.finish(), warnings, complete: document.complete })
}

/// Frames with the same address are calls that are inlined into one another.
fn locations(builder: &mut ProfileBuilder, raw: &[Raw]) -> Vec<LocationId> {
    let of_address = |one: &Raw, other: &Raw| one.address != 0 && one.address == other.address;
    raw.chunk_by(of_address)
        .map(|calls| {
            let last = calls.len() - 1;
            let frames = calls.iter().enumerate().map(|(at, raw)| frame(raw, at < last)).collect();
            let address = match calls[0].address {
                0 => Address::Unknown,
                avma => Address::Anonymous { avma },
            };
            builder.location(address, frames)
        })
        .collect()
}

fn frame(raw: &Raw, inlined: bool) -> Frame {
    let some = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
    let file = match (raw.folder.as_str(), raw.file.as_str()) {
        (_, "") => None,
        ("", file) => some(file),
        (folder, file) => Some(format!("{folder}/{file}")),
    };
    let address = format!("{:#x}", raw.address);
    let function = if raw.function.is_empty() && raw.address > 0 { address } else { raw.function.clone() };
    Frame { file, line: raw.line, module: some(&raw.module), inlined, ..named(&function) }
}

/// Stores memcheck's classification of the leaks; returns the warnings.
fn judge(document: &Document, builder: &mut ProfileBuilder) -> Vec<String> {
    let mut warnings = Vec::new();
    let mut parts = Vec::new();
    for (kind, words) in KINDS {
        let of_kind = document.leaks.iter().filter(|leak| leak.kind == kind);
        let (bytes, blocks) = of_kind.fold((0_u64, 0_u64), |(bytes, blocks), leak| {
            (bytes.saturating_add(leak.direct_bytes()), blocks.saturating_add(leak.blocks))
        });
        if blocks > 0 {
            parts.push(format!("{bytes} bytes in {blocks} blocks {words}"));
            let value = format!("{bytes} bytes in {blocks} blocks");
            builder.recording().environment.push((format!("memcheck, {words}"), value));
        }
    }
    if !parts.is_empty() {
        warnings.push(format!("memcheck's judgement of the leaks: {}", parts.join(", ")));
    }
    let indirect = document.leaks.iter().fold(0_u64, |sum, leak| sum.saturating_add(leak.indirect_bytes));
    if indirect > 0 && !document.leaks.iter().any(|leak| leak.kind == "Leak_IndirectlyLost") {
        warnings.push(format!(
            "{indirect} bytes that were indirectly lost have no stacks; run memcheck with --show-leak-kinds=all"
        ));
    }
    if document.leaks.is_empty() {
        warnings.push(String::from("memcheck listed no leaks; it lists them with --leak-check=full"));
    }
    if !document.complete {
        warnings.push(String::from("the file ends early; leaks behind its end are missing"));
    }
    warnings
}

impl Leak {
    /// Returns the bytes of the record's own blocks.
    fn direct_bytes(&self) -> u64 {
        self.bytes.saturating_sub(self.indirect_bytes)
    }
}
