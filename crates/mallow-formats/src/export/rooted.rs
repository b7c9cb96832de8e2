//! Stacks for formats without processes: the program is the root of its stacks, if it is known.

use mallow_base::Frame;
use mallow_stacks::{ProcessIndex, Site, StackProfile, Stacks};
use std::borrow::Cow;

/// Stacks with a frame for each process.
pub(super) struct Rooted<'a> {
    stacks: &'a Stacks,
    roots: Vec<Option<Frame>>,
}

impl<'a> Rooted<'a> {
    pub(super) fn of(profile: &'a impl StackProfile) -> Rooted<'a> {
        let roots = (0..profile.processes() as u32).map(|process| {
            let path = profile.program(ProcessIndex(process))?;
            let name = path.rsplit('/').next().filter(|name| !name.is_empty())?;
            Some(Frame { function: name.to_owned(), ..Frame::default() })
        });
        Rooted { stacks: profile.stacks(), roots: roots.collect() }
    }

    /// Returns the frames of a site, including inlined ones.
    pub(super) fn outermost_first<W>(&self, site: &Site<W>) -> Vec<&Frame> {
        let mut frames: Vec<&Frame> = self.stacks.frames(site.stack).collect();
        frames.extend(self.roots.get(site.process.0 as usize).and_then(Option::as_ref));
        frames.reverse();
        frames
    }
}

/// Returns a frame's name; an address is shown with its library, without which it means nothing.
pub(super) fn name(frame: &Frame) -> Cow<'_, str> {
    let is_address = frame.function.starts_with("0x");
    match frame.module.as_deref().and_then(|path| path.rsplit('/').next()) {
        Some(module) if is_address => format!("{} [{module}]", frame.function).into(),
        _ => frame.function.as_str().into(),
    }
}

/// Returns a name without characters that end a line or separate frames.
pub(super) fn of_line(name: &str) -> String {
    let name: String = name
        .chars()
        .map(|c| match c {
            ';' => ':',
            c if c.is_control() => ' ',
            c => c,
        })
        .collect();
    if name.trim().is_empty() { String::from("[unknown]") } else { name }
}
