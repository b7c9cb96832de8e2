//! Packed answers: what comes back, and what damage does.

use super::*;
use proptest::prelude::*;

fn frame(function: &str, line: Option<u32>) -> Frame {
    Frame { function: function.into(), line, module: Some("/bin/x".into()), ..Frame::default() }
}

fn bytes_of(answers: &Answers) -> Vec<u8> {
    let frames = answers.frames.iter().map(|(svma, frames)| (*svma, &frames[..])).collect();
    encode(&frames, answers.problem.as_ref(), &answers.tried, "id")
}

fn module() -> ModuleKey {
    ModuleKey { path: "/bin/x".into(), build_id: Vec::new() }
}

fn answer(frames: Vec<Vec<Frame>>) -> Answer {
    let tried = TriedFile { path: "/bin/x".into(), identity: Some("i".into()), outcome: "taken".into() };
    Answer {
        frames,
        problem: Some(Problem::Other("p".into())),
        tried: vec![tried],
        is_lasting: true,
        is_whole: true,
    }
}

/// With a checksum that fits, so that the parser itself is met.
#[test]
fn bytes_of_any_kind_are_read_without_harm() {
    let frames = [(5, vec![frame("a", Some(7))]), (6, Vec::new())].into_iter().collect();
    let Answer { problem, tried, .. } = answer(Vec::new());
    let whole = bytes_of(&Answers { frames, problem, tried });
    for at in 12..whole.len() {
        for byte in [0, 1, 0x7f, 0xff] {
            let mut damaged = whole.clone();
            damaged[at] = byte;
            let checksum = crc32fast::hash(&damaged[12..]).to_le_bytes();
            damaged[8..12].copy_from_slice(&checksum);
            let _ = (decode(&damaged, "id", None), decode(&damaged, "id", Some(&[5, 6])));
        }
    }
}

/// Sets the checksum of an answer whose bytes were changed.
fn sealed(mut bytes: Vec<u8>) -> Vec<u8> {
    let checksum = crc32fast::hash(&bytes[14..]).to_le_bytes();
    bytes[10..14].copy_from_slice(&checksum);
    bytes
}

#[test]
fn an_answer_comes_back_and_its_frames_are_of_its_module() {
    let sent = answer(vec![vec![frame("a", Some(7)), frame("b", None)], vec![frame("c", None)]]);
    let bytes = sent.to_bytes(&[5, 9]);
    assert_eq!(Answer::from_bytes(&bytes, &module(), &[5, 9]), Some(sent.clone()));
    let other = ModuleKey { path: "/bin/y".into(), ..module() };
    let renamed = Answer::from_bytes(&bytes, &other, &[5, 9]).unwrap();
    assert!(renamed.frames.iter().flatten().all(|frame| frame.module.as_deref() == Some("/bin/y")));
}

#[test]
fn what_does_not_answer_each_address_is_no_answer() {
    let of = |frames: Vec<Vec<Frame>>, svmas: &[u64]| answer(frames).to_bytes(svmas);
    let whole = of(vec![vec![frame("a", None)], vec![frame("c", None)]], &[5, 9]);
    assert_eq!(Answer::from_bytes(&whole, &module(), &[5, 6]), None, "another address");
    assert_eq!(Answer::from_bytes(&of(vec![Vec::new()], &[5]), &module(), &[5]), None, "no frames");
    for length in 0..whole.len() {
        assert_eq!(Answer::from_bytes(&whole[..length], &module(), &[5, 9]), None, "cut at {length}");
    }
    let mut indices = whole.clone();
    let at = indices.len() - 17;
    indices[at..].fill(0xfe);
    assert_eq!(Answer::from_bytes(&sealed(indices), &module(), &[5, 9]), None, "strings that are not there");
}

/// One string, by which very many frames are named.
#[test]
fn an_answer_does_not_unpack_to_more_than_its_addresses_can_have() {
    let long = frame(&"x".repeat(2 << 10), None);
    let bytes = answer(vec![vec![long.clone(); 20_000]]).to_bytes(&[5]);
    assert!(Answer::from_bytes(&bytes, &module(), &[5]).is_some());
    let bytes = answer(vec![vec![long; 60_000]]).to_bytes(&[5]);
    assert!(bytes.len() < 3 << 20);
    assert_eq!(Answer::from_bytes(&bytes, &module(), &[5]), None);
}

proptest! {
    #[test]
    fn any_answers_come_back(
        frames in prop::collection::hash_map(any::<u64>(), prop::collection::vec(
            (any::<String>(), any::<Option<String>>(), prop::option::of(1u32..), any::<bool>()), 0..4), 0..20),
        problem in prop::option::of(prop_oneof![Just(Problem::Stripped), Just(Problem::Symbolless), any::<String>().prop_map(Problem::Other)]),
        tried in prop::collection::vec(any::<(String, Option<String>, String)>(), 0..4),
    ) {
        let of = |(function, file, line, inlined): (String, Option<String>, Option<u32>, bool)| {
            Frame { function, module: file.clone(), file, line, inlined, ..Frame::default() }
        };
        let frames: FxHashMap<u64, Vec<Frame>> =
            frames.into_iter().map(|(svma, frames)| (svma, frames.into_iter().map(of).collect())).collect();
        let all: Vec<u64> = frames.keys().copied().collect();
        let tried = tried.into_iter().map(|(path, identity, outcome)| TriedFile { path: path.into(), identity, outcome });
        let answers = Answers { frames, problem, tried: tried.collect() };
        let bytes = bytes_of(&answers);
        prop_assert_eq!(decode(&bytes, "id", None), Some(answers.clone()));
        prop_assert_eq!(decode(&bytes, "id", Some(&all)), Some(answers));
    }
}
