//! Functions in documents: what they weigh themselves and with their callees, and who calls whom.

use mallow_base::Frame;
use mallow_view::{FunctionRow, Peek};
use serde::Serialize;

/// A function and its metrics.
#[derive(Serialize)]
pub(crate) struct FunctionJson<'a, M> {
    #[serde(flatten)]
    name: NameJson<'a>,
    #[serde(rename = "self")]
    own: M,
    children: M,
}

/// A function, its callers and its callees.
#[derive(Serialize)]
pub(crate) struct PeekJson<'a, M> {
    #[serde(flatten)]
    name: NameJson<'a>,
    #[serde(rename = "self")]
    own: M,
    children: M,
    callers: Vec<NeighbourJson<'a, M>>,
    callees: Vec<NeighbourJson<'a, M>>,
}

#[derive(Serialize)]
struct NeighbourJson<'a, M> {
    #[serde(flatten)]
    name: NameJson<'a>,
    totals: M,
}

#[derive(Default, Serialize)]
struct NameJson<'a> {
    /// Null for all functions of a module that have no names, and for nobody.
    function: Option<&'a str>,
    file: Option<&'a str>,
    module: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    language: Option<&'static str>,
}

impl<'a> NameJson<'a> {
    fn of(frame: &'a Frame) -> NameJson<'a> {
        let is_nameless = frame.function.starts_with("0x");
        NameJson {
            function: (!is_nameless).then_some(frame.function.as_str()),
            file: frame.file.as_deref().filter(|_| !is_nameless),
            module: frame.module.as_deref(),
            language: frame.language.word(),
        }
    }
}

impl<'a, M> FunctionJson<'a, M> {
    pub(crate) fn of<W>(row: &FunctionRow<'a, W>, metrics: impl Fn(&W) -> M) -> Self {
        Self { name: NameJson::of(row.frame), own: metrics(&row.own), children: metrics(&row.under) }
    }
}

impl<'a, M> PeekJson<'a, M> {
    pub(crate) fn of<W>(peek: &Peek<'a, W>, metrics: impl Fn(&W) -> M) -> Self {
        let caller = |(frame, weights): &(Option<&'a Frame>, W)| NeighbourJson {
            name: frame.map(NameJson::of).unwrap_or_default(),
            totals: metrics(weights),
        };
        let callee = |(frame, weights): &(&'a Frame, W)| NeighbourJson {
            name: NameJson::of(frame),
            totals: metrics(weights),
        };
        Self {
            name: NameJson::of(peek.frame),
            own: metrics(&peek.own),
            children: metrics(&peek.under),
            callers: peek.callers.iter().map(caller).collect(),
            callees: peek.callees.iter().map(callee).collect(),
        }
    }
}
