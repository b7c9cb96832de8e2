//! Stacks that grow, merged by what people see of them.

use crate::check::visible;
use mallow_base::Frame;
use mallow_evidence::SoakReport;
use rustc_hash::FxHashMap;

/// A stack that grows.
#[derive(Clone, Debug, PartialEq)]
pub struct GrowingRow<'a> {
    /// Its visible frames, innermost first.
    pub frames: Vec<&'a Frame>,
    /// Its part of the whole growth, 0 to 1.
    pub share: f64,
    /// Bytes for each request.
    pub bytes_per_request: f64,
    /// Blocks for each request.
    pub blocks_per_request: f64,
    /// Live bytes at the first and the last observation of the window.
    pub bytes: (u64, u64),
    /// Live blocks at the same.
    pub blocks: (u64, u64),
}

/// The stacks that grow.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Growing<'a> {
    /// Those that grow most.
    pub rows: Vec<GrowingRow<'a>>,
    /// How many more there are.
    pub more: usize,
    /// Their part of the whole growth together.
    pub more_share: f64,
}

/// The stacks that grow, those that grow most first; at most `limit` of them.
pub fn growing(report: &SoakReport, limit: usize) -> Growing<'_> {
    let mut rows: Vec<GrowingRow<'_>> = Vec::new();
    let mut places: FxHashMap<Vec<&Frame>, usize> = FxHashMap::default();
    for growth in &report.growth {
        let frames = without_calls(visible(&growth.frames, &[]));
        let at = *places.entry(frames.clone()).or_insert(rows.len());
        if at == rows.len() {
            let none = (0, 0);
            let (bytes_per_request, blocks_per_request) = (0.0, 0.0);
            rows.push(GrowingRow {
                frames,
                share: 0.0,
                bytes_per_request,
                blocks_per_request,
                bytes: none,
                blocks: none,
            });
        }
        let row = &mut rows[at];
        row.share += growth.stack.share;
        row.bytes_per_request += growth.stack.trend.per_request;
        row.blocks_per_request += growth.stack.blocks_per_request;
        row.bytes = sum(row.bytes, growth.bytes);
        row.blocks = sum(row.blocks, growth.blocks);
    }
    rows.sort_by(|one, other| other.share.total_cmp(&one.share));
    let rest = rows.split_off(limit.min(rows.len()));
    Growing { rows, more: rest.len(), more_share: rest.iter().map(|row| row.share).sum() }
}

/// Hides Rust's frames for calls of closures and function pointers, as long as another frame remains: servers have
/// many of them.
fn without_calls(frames: Vec<&Frame>) -> Vec<&Frame> {
    let is_call = |frame: &&Frame| frame.function.contains("core::ops::function::Fn");
    let kept: Vec<&Frame> = frames.iter().copied().filter(|frame| !is_call(frame)).collect();
    if kept.is_empty() { frames } else { kept }
}

fn sum(one: (u64, u64), other: (u64, u64)) -> (u64, u64) {
    (one.0.saturating_add(other.0), one.1.saturating_add(other.1))
}
