//! Frames as Valgrind's tools write them, such as `0x1091E8: grow (rows.c:20)`: what the viewers of DHAT's and massif's files show.
//!
//! Every frame has an address and a place, though the place may be unknown: importers look for both.

use mallow_base::Frame;
use mallow_profile::{Address, LocationId, Profile, StackId};
use rustc_hash::FxHashMap;

/// The texts of a profile's frames, each once.
pub struct FrameTexts<'a> {
    profile: &'a Profile,
    texts: Vec<String>,
    numbers: FxHashMap<String, u32>,
    /// By location, innermost frame first.
    locations: FxHashMap<LocationId, Vec<u32>>,
}

impl<'a> FrameTexts<'a> {
    /// The number of the first frame is how many texts there are already.
    pub fn new(profile: &'a Profile, texts: Vec<String>) -> FrameTexts<'a> {
        FrameTexts { profile, texts, numbers: FxHashMap::default(), locations: FxHashMap::default() }
    }

    /// A stack's frames by number, innermost first, at most so many.
    pub fn stack(&mut self, stack: Option<StackId>, frames_max: usize) -> Vec<u32> {
        let mut frames = Vec::new();
        let mut next = stack;
        while let Some(id) = next
            && frames.len() < frames_max
        {
            let node = self.profile.stacks.node(id);
            frames.extend(self.location(node.location));
            next = node.parent;
        }
        frames.truncate(frames_max);
        frames
    }

    /// The text of a number.
    pub fn text(&self, number: u32) -> &str {
        &self.texts[number as usize]
    }

    /// All texts by number.
    pub fn texts(&self) -> &[String] {
        &self.texts
    }

    fn location(&mut self, id: LocationId) -> &[u32] {
        let FrameTexts { profile, texts, numbers, locations } = self;
        locations.entry(id).or_insert_with(|| {
            let location = &profile.stacks.locations[id.0 as usize];
            let frames = location.frames.iter().map(|frame| text_of(location.address, frame));
            frames
                .map(|text| {
                    *numbers.entry(text).or_insert_with_key(|text| {
                        texts.push(text.clone());
                        texts.len() as u32 - 1
                    })
                })
                .collect()
        })
    }
}

/// The text of a frame at an address; 0 is no address.
fn text_of(address: Address, frame: &Frame) -> String {
    let address = match address {
        Address::InModule { svma, .. } => svma,
        Address::Anonymous { avma } => avma,
        Address::Unknown => 0,
    };
    let is_nameless = frame.function == format!("{address:#x}") || frame.function == "[unknown]";
    let function = if is_nameless { "???" } else { frame.function.as_str() };
    let place = match (&frame.file, &frame.module) {
        (Some(file), _) => format!("{file}:{}", frame.line.unwrap_or(0)),
        (None, Some(module)) => format!("in {module}"),
        (None, None) => String::from("in ???"),
    };
    // A line each: massif's files know no other way to end a frame.
    format!("{address:#x}: {function} ({place})").replace(['\n', '\r'], " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_has_an_address_and_a_place() {
        let frame = Frame {
            function: "a\nb".into(),
            file: Some("x.c".into()),
            line: Some(3),
            module: Some("/bin/x".into()),
            inlined: false,
            ..Frame::default()
        };
        let at = Address::Anonymous { avma: 0x1f };
        assert_eq!(text_of(at, &frame), "0x1f: a b (x.c:3)");
        let no_line = Frame { line: None, ..frame.clone() };
        assert_eq!(text_of(at, &no_line), "0x1f: a b (x.c:0)");
        let no_file = Frame { file: None, ..frame };
        assert_eq!(text_of(Address::Unknown, &no_file), "0x0: a b (in /bin/x)");
        let nameless = Frame { function: "0x1f".into(), ..Frame::default() };
        assert_eq!(text_of(at, &nameless), "0x1f: ??? (in ???)");
        assert_eq!(text_of(Address::Unknown, &nameless), "0x0: 0x1f (in ???)");
    }
}
