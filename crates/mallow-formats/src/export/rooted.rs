//! Stacks for formats that know no processes: the program stands at the root of its stacks, where it is known.

use mallow_base::Frame;
use mallow_profile::{Profile, Site};
use std::borrow::Cow;

/// A profile with a frame for each process.
pub(super) struct Rooted<'a> {
    profile: &'a Profile,
    roots: Vec<Option<Frame>>,
}

impl<'a> Rooted<'a> {
    pub(super) fn of(profile: &'a Profile) -> Rooted<'a> {
        let roots = profile.processes.iter().map(|process| {
            let first = process.command.split(' ').next().filter(|word| !word.is_empty());
            let path = first.or_else(|| profile.recording.command.first().map(String::as_str))?;
            let name = path.rsplit('/').next().filter(|name| !name.is_empty())?;
            Some(Frame { function: name.to_owned(), ..Frame::default() })
        });
        Rooted { profile, roots: roots.collect() }
    }

    /// The frames of a site, inlined ones in their place.
    pub(super) fn outermost_first(&self, site: &Site) -> Vec<&Frame> {
        let mut frames: Vec<&Frame> = self.profile.frames(site.stack).collect();
        frames.extend(self.roots.get(site.process.0 as usize).and_then(Option::as_ref));
        frames.reverse();
        frames
    }
}

/// A frame's name; an address has its library beside it, without which it means nothing.
pub(super) fn name(frame: &Frame) -> Cow<'_, str> {
    let is_address = frame.function.starts_with("0x");
    match frame.module.as_deref().and_then(|path| path.rsplit('/').next()) {
        Some(module) if is_address => format!("{} [{module}]", frame.function).into(),
        _ => frame.function.as_str().into(),
    }
}

/// A name that breaks neither its line nor its stack.
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
