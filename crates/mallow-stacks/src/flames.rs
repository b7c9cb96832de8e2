//! Stacks put together for a flame graph: a box for each function below the same callers.
//!
//! A box weighs what all stacks through it weigh. It is as wide as they are, and a stack is as wide as the larger of its two weights, so
//! that what is gone has a width too, and boxes above one another always fit.

use mallow_base::{Language, printable};
use rustc_hash::FxHashMap;

/// The function of a box.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FlameFunction {
    /// Its name as it is shown.
    pub name: String,
    /// Its language.
    pub language: Language,
    /// The file that it is in, where functions of one name are several; empty where they are one.
    pub home: String,
}

/// The number of a function in its [`Flames`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FlameFunctionId(pub u32);

/// The number of a place in its [`Flames`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FlamePlaceId(pub u32);

/// One call of a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlameCall {
    /// The function.
    pub function: FlameFunctionId,
    /// The place of the call.
    pub place: Option<FlamePlaceId>,
    /// How many times in a row it is on the stack; above 1 if recursion is merged.
    pub times: u32,
}

/// The weights of a stack in two profiles. For a single profile `before` is 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlameWeight {
    /// In the earlier one.
    pub before: u64,
    /// In the later one, or the only one.
    pub after: u64,
}

impl FlameWeight {
    /// Returns the weight of a single profile.
    pub fn of(after: u64) -> FlameWeight {
        FlameWeight { before: 0, after }
    }

    /// Adds another stack's.
    pub fn add(&mut self, other: FlameWeight) {
        self.before = self.before.saturating_add(other.before);
        self.after = self.after.saturating_add(other.after);
    }
}

/// A function below the same callers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FlameBox {
    /// The index of the caller's box, which precedes this one; the root is its own parent.
    pub parent: u32,
    /// None in the root.
    pub function: Option<FlameFunctionId>,
    /// The maximal number of calls on a stack.
    pub times: u32,
    /// Stacks that end here.
    pub own: FlameWeight,
    /// The width of its self weight, in the unit of the weights.
    pub own_width: u64,
    place: Option<(FlamePlaceId, u64)>,
    /// Further places; most boxes have none.
    #[allow(clippy::box_collection)] // Eight bytes in each box instead of 24.
    more_places: Option<Box<Vec<(FlamePlaceId, u64)>>>,
}

/// The total weight of a box, including its callees.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlameTotal {
    /// Stacks that end in it or go on.
    pub weight: FlameWeight,
    /// Its width, in the unit of the weights.
    pub width: u64,
}

/// Stacks in the making of a graph.
#[derive(Clone, Debug)]
pub struct Flames {
    /// By [`FlameFunctionId`].
    pub functions: Vec<FlameFunction>,
    /// By [`FlamePlaceId`].
    pub places: Vec<String>,
    /// Parents before children; the first is the root.
    pub boxes: Vec<FlameBox>,
    function_ids: FxHashMap<FlameFunction, FlameFunctionId>,
    place_ids: FxHashMap<String, FlamePlaceId>,
    by_caller: FxHashMap<(u32, FlameFunctionId), u32>,
}

impl Default for Flames {
    fn default() -> Self {
        Flames {
            functions: Vec::new(),
            places: Vec::new(),
            boxes: vec![FlameBox { times: 1, ..FlameBox::default() }],
            function_ids: FxHashMap::default(),
            place_ids: FxHashMap::default(),
            by_caller: FxHashMap::default(),
        }
    }
}

impl Flames {
    /// The id of a function; see [`FlameFunction`].
    pub fn function(&mut self, name: &str, language: Language, home: &str) -> FlameFunctionId {
        let mut function = FlameFunction { name: printable(name), language, home: home.to_owned() };
        if function.name.trim().is_empty() {
            function.name = "[unknown]".to_owned();
        }
        let (functions, next) = (&mut self.functions, FlameFunctionId(self.function_ids.len() as u32));
        *self.function_ids.entry(function).or_insert_with_key(|function| {
            functions.push(function.clone());
            next
        })
    }

    /// The id of a place, such as `reader.rs:12 in app`.
    pub fn place(&mut self, place: &str) -> FlamePlaceId {
        let (places, next) = (&mut self.places, FlamePlaceId(self.place_ids.len() as u32));
        *self.place_ids.entry(printable(place)).or_insert_with_key(|place| {
            places.push(place.clone());
            next
        })
    }

    /// Adds a stack, outermost call first.
    pub fn add(&mut self, calls: impl IntoIterator<Item = FlameCall>, weight: FlameWeight) {
        let width = weight.before.max(weight.after);
        let mut at = 0;
        for call in calls {
            let next = self.boxes.len() as u32;
            let boxes = &mut self.boxes;
            at = *self.by_caller.entry((at, call.function)).or_insert_with(|| {
                boxes.push(FlameBox { parent: at, function: Some(call.function), ..FlameBox::default() });
                next
            });
            let here = &mut self.boxes[at as usize];
            here.times = here.times.max(call.times);
            if let Some(place) = call.place {
                here.was_at(place, width);
            }
        }
        let last = &mut self.boxes[at as usize];
        last.own.add(weight);
        last.own_width = last.own_width.saturating_add(width);
    }

    /// Adds a stack of names alone.
    pub fn add_names<'a>(&mut self, names: impl IntoIterator<Item = &'a str>, weight: FlameWeight) {
        let calls: Vec<FlameCall> = names
            .into_iter()
            .map(|name| FlameCall {
                function: self.function(name, Language::Native, ""),
                place: None,
                times: 1,
            })
            .collect();
        self.add(calls, weight);
    }

    /// Returns the weight of all stacks.
    pub fn sum(&self) -> FlameWeight {
        let mut sum = FlameWeight::default();
        self.boxes.iter().for_each(|this| sum.add(this.own));
        sum
    }

    /// Returns the total weight of each box.
    pub fn totals(&self) -> Vec<FlameTotal> {
        let own = |this: &FlameBox| FlameTotal { weight: this.own, width: this.own_width };
        let mut totals: Vec<FlameTotal> = self.boxes.iter().map(own).collect();
        for at in (1..totals.len()).rev() {
            let FlameTotal { weight, width } = totals[at];
            let parent = &mut totals[self.boxes[at].parent as usize];
            parent.weight.add(weight);
            parent.width = parent.width.saturating_add(width);
        }
        totals
    }
}

impl FlameBox {
    fn was_at(&mut self, place: FlamePlaceId, width: u64) {
        let known = match &mut self.place {
            None => {
                self.place = Some((place, width));
                return;
            }
            Some(first) if first.0 == place => &mut first.1,
            Some(_) => {
                let more = self.more_places.get_or_insert_default();
                match more.iter_mut().position(|known| known.0 == place) {
                    Some(at) => &mut more[at].1,
                    None => {
                        more.push((place, width));
                        return;
                    }
                }
            }
        };
        *known = known.saturating_add(width);
    }

    /// Returns the places of its calls, the heaviest first.
    pub fn places(&self) -> Vec<(FlamePlaceId, u64)> {
        let more = self.more_places.iter().flat_map(|more| more.iter());
        let mut places: Vec<(FlamePlaceId, u64)> = self.place.iter().chain(more).copied().collect();
        places.sort_by_key(|(place, width)| (std::cmp::Reverse(*width), *place));
        places
    }
}
