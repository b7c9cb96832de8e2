//! Profiles as the stacks of a flame graph.

use crate::diff::compared_stacks;
use crate::drawn::{DrawnCall, drawn, is_nameless};
use crate::{Filter, FrameVisibility, whole_place};
use mallow_base::{Frame, Language};
use mallow_stacks::{
    FlameCall, FlameFunctionId, FlamePlaceId, FlameWeight, Flames, Metric, MetricOf, Recursion, StackProfile,
};
use rustc_hash::FxHashMap;
use std::rc::Rc;

/// Which part of a profile is drawn.
#[derive(Clone, Copy, Debug)]
pub struct FlameOptions<'a> {
    /// Which frames of a stack are shown.
    pub shown: FrameVisibility,
    /// Which sites.
    pub filter: &'a Filter,
    /// Whether functions that call themselves, or each other, are merged and shown with a count.
    pub folds_recursion: bool,
}

/// The stacks of a profile.
pub fn flames<M: Metric>(
    profile: &impl StackProfile<Weights = M::Weights>,
    options: FlameOptions<'_>,
    by: M,
) -> Flames {
    let mut filling = Filling::new(options.folds_recursion);
    drawn(profile, options.shown, options.filter, by, |calls, value| {
        filling.add(calls, FlameWeight::of(value));
    });
    filling.flames
}

/// The stacks of two profiles, matched as a diff matches them.
pub fn compared_flames<P: StackProfile>(
    sides: [&P; 2],
    options: FlameOptions<'_>,
    by: MetricOf<P>,
) -> Flames {
    let mut filling = Filling::new(options.folds_recursion);
    compared_stacks(sides, options.shown, options.filter, by, |calls, weight| filling.add(calls, weight));
    filling.flames
}

/// A call as it may recur. Functions without a name are not the same because they lie in the same library.
fn recurring((drawn, call): (&DrawnCall<'_>, &FlameCall)) -> (u32, u32) {
    let has_name = drawn.frame.is_none_or(|frame| !is_nameless(frame));
    (if has_name { call.function.0 } else { Recursion::NOBODY }, call.times)
}

/// A flame graph, and caches for building it.
struct Filling {
    flames: Flames,
    recursion: Option<Recursion>,
    /// By the frame's place in memory.
    places: FxHashMap<*const Frame, Option<FlamePlaceId>>,
    /// By the name's place in memory.
    functions: FxHashMap<(*const u8, Language), FlameFunctionId>,
    /// Names are kept alive, so that their addresses are not reused.
    names: Vec<Rc<str>>,
}

impl Filling {
    fn new(folds_recursion: bool) -> Filling {
        Filling {
            flames: Flames::default(),
            recursion: folds_recursion.then(Recursion::default),
            places: FxHashMap::default(),
            functions: FxHashMap::default(),
            names: Vec::new(),
        }
    }

    fn add(&mut self, drawn: &[DrawnCall<'_>], weight: FlameWeight) {
        let calls: Vec<FlameCall> = drawn.iter().map(|call| self.call(call)).collect();
        match &mut self.recursion {
            Some(recursion) => {
                let functions: Vec<(u32, u32)> = drawn.iter().zip(&calls).map(recurring).collect();
                let kept = recursion.fold(&functions);
                let mut folded: Vec<FlameCall> = Vec::with_capacity(kept.len());
                for kept in kept {
                    let call = FlameCall { times: kept.times, ..calls[kept.at] };
                    match folded.last_mut() {
                        // Functions of one library without a name.
                        Some(last) if last.function == call.function => last.times += call.times,
                        _ => folded.push(call),
                    }
                }
                self.flames.add(folded, weight);
            }
            None => {
                let each = |call: &FlameCall| {
                    std::iter::repeat_n(FlameCall { times: 1, ..*call }, call.times as usize)
                };
                self.flames.add(calls.iter().flat_map(each), weight);
            }
        }
    }

    fn call(&mut self, call: &DrawnCall<'_>) -> FlameCall {
        let language = call.frame.map_or(Language::Native, |frame| frame.language);
        // Each file of a script may have its own `main`.
        let home = call.frame.filter(|frame| frame.is_script()).and_then(|frame| frame.file.as_deref());
        let key = (call.name.as_ptr(), language);
        let function = match self.functions.get(&key) {
            Some(function) => *function,
            None => {
                let function = self.flames.function(&call.name, language, home.unwrap_or_default());
                self.names.push(Rc::clone(&call.name));
                self.functions.insert(key, function);
                function
            }
        };
        let place = call.frame.and_then(|frame| {
            *self
                .places
                .entry(frame)
                .or_insert_with(|| whole_place(frame).map(|text| self.flames.place(&text)))
        });
        FlameCall { function, place, times: u32::try_from(call.times).unwrap_or(u32::MAX) }
    }
}
