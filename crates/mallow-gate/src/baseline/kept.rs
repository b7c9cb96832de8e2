//! Frames as a baseline keeps them: without what differs between two machines that build the same source.

use mallow_base::Frame;

/// The innermost frames that are kept of a stack that is too deep.
const INNERMOST: usize = 192;

/// The outermost frames of it.
const OUTERMOST: usize = 64;

/// The deepest stack that is kept.
pub(super) const DEPTH_MAX: usize = INNERMOST + OUTERMOST;

/// A frame without folders but the last of its source file, without its module's folder and without an offset.
pub fn as_kept(frame: &Frame) -> Frame {
    let function = match frame.function.rsplit_once("+0x") {
        Some((name, hex)) if !name.is_empty() && hex.bytes().all(|b| b.is_ascii_hexdigit()) => {
            name.to_owned()
        }
        _ => frame.function.clone(),
    };
    Frame {
        function,
        file: frame.file.as_deref().map(|path| ending(path, 2).to_owned()),
        line: frame.line,
        module: frame.module.as_deref().map(|path| ending(path, 1).to_owned()),
        inlined: frame.inlined,
        language: frame.language,
    }
}

/// A stack of kept frames: of one that is very deep its two ends.
pub fn kept_stack(frames: &[Frame]) -> Vec<Frame> {
    if frames.len() <= DEPTH_MAX {
        return frames.iter().map(as_kept).collect();
    }
    let outermost = &frames[frames.len() - OUTERMOST..];
    frames[..INNERMOST].iter().chain(outermost).map(as_kept).collect()
}

/// The last components of a path.
fn ending(path: &str, components: usize) -> &str {
    match path.rmatch_indices('/').nth(components - 1) {
        Some((at, _)) => &path[at + 1..],
        None => path,
    }
}
