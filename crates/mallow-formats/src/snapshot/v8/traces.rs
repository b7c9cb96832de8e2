//! Where objects were allocated, for snapshots that were made while V8 tracked it (this is not "Allocation sampling").
//!
//! `trace_function_infos` are functions with their script and the line at which they begin; `trace_tree` has a node
//! for each call that led to an allocation, with its children in a nested array; an object refers to its node by a
//! number. What the virtual machine's own functions allocate is attributed to the function of a script that called
//! them.

use super::json::{Json, Stop, Token};
use super::meta::{FIELDS_MAX, TraceMeta};
use super::strings::Strings;
use mallow_heapsnap::{GraphParts, NameId, Site};
use rustc_hash::FxHashMap;
use std::io::Read;

/// Functions, and their calls.
#[derive(Default)]
pub(super) struct Traces {
    functions: Vec<Function>,
    calls: Vec<Call>,
    /// The call of each number.
    by_id: FxHashMap<u64, u32>,
}

#[derive(Clone, Copy)]
struct Function {
    /// Number of a string, which is empty for functions of the virtual machine.
    script: u32,
    /// From 1 on; 0 if V8 does not know it.
    line: u32,
}

struct Call {
    /// Index into [`Traces::functions`].
    function: u64,
    /// The caller; `None` for the root.
    caller: Option<u32>,
}

/// A node of the tree that is being parsed.
#[derive(Default)]
struct Open {
    caller: Option<u32>,
    /// How many fields of the present node were parsed.
    fields: usize,
    id: u64,
    function: u64,
}

impl Traces {
    pub(super) fn read_functions(&mut self, json: &mut Json<impl Read>, meta: TraceMeta) -> Result<(), Stop> {
        json.records(meta.function_fields, |record: &[u64; FIELDS_MAX]| {
            let script = u32::try_from(record[meta.script]).unwrap_or(u32::MAX);
            self.functions.push(Function { script, line: u32::try_from(record[meta.line]).unwrap_or(0) });
            Ok(())
        })
    }

    pub(super) fn read_tree(&mut self, json: &mut Json<impl Read>, meta: TraceMeta) -> Result<(), Stop> {
        let mut open: Vec<Open> = Vec::new();
        json.nested(|token| {
            match (token, open.last_mut()) {
                (Token::Open, None) => open.push(Open::default()),
                (Token::Open, Some(node)) if node.fields == meta.children => {
                    node.fields += 1;
                    let call = self.calls.len() as u32;
                    self.calls.push(Call { function: node.function, caller: node.caller });
                    self.by_id.insert(node.id, call);
                    open.push(Open { caller: Some(call), ..Open::default() });
                }
                (Token::Number(number), Some(node)) if node.fields != meta.children => {
                    if node.fields == meta.id {
                        node.id = number;
                    } else if node.fields == meta.function {
                        node.function = number;
                    }
                    node.fields += 1;
                }
                (Token::Close, Some(node)) if node.fields == 0 => {
                    open.pop();
                }
                _ => return Err("a node of the tree of calls"),
            }
            if let Some(node) = open.last_mut().filter(|node| node.fields == meta.call_fields) {
                *node = Open { caller: node.caller, ..Open::default() };
            }
            Ok(())
        })
    }

    /// Returns the strings that are names of scripts.
    pub(super) fn scripts(&self) -> impl Iterator<Item = u32> {
        self.functions.iter().map(|function| function.script)
    }

    /// Adds sites to the graph, where some of its objects were allocated, and returns the calls' numbers.
    pub(super) fn sites(
        &self,
        objects: usize,
        made_by: &[(u32, u32)],
        strings: &Strings,
        parts: &mut GraphParts,
    ) {
        if made_by.is_empty() || self.calls.is_empty() {
            return;
        }
        let mut known = FxHashMap::default();
        let is_named = |script: u32| {
            (script as usize) < strings.names.len() && !strings.names.get(NameId(script)).is_empty()
        };
        // Callers come before their callees. 0 means no site, as in the graph.
        let mut of_calls: Vec<u32> = Vec::with_capacity(self.calls.len());
        for call in &self.calls {
            let own = usize::try_from(call.function).ok().and_then(|at| self.functions.get(at));
            let site = match own.filter(|function| is_named(function.script)) {
                Some(function) => *known.entry((function.script, function.line)).or_insert_with(|| {
                    parts.sites.push(Site { file: NameId(function.script), line: function.line });
                    parts.sites.len() as u32
                }),
                None => call.caller.map_or(0, |caller| of_calls[caller as usize]),
            };
            of_calls.push(site);
        }
        parts.site_of = vec![0; objects];
        for (node, id) in made_by {
            if let Some(call) = self.by_id.get(&u64::from(*id)) {
                parts.site_of[*node as usize] = of_calls[*call as usize];
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const META: TraceMeta =
        TraceMeta { function_fields: 6, script: 2, line: 4, call_fields: 5, id: 0, function: 1, children: 4 };

    fn tree(text: &str) -> Result<Traces, Stop> {
        let mut traces = Traces::default();
        traces.read_tree(&mut Json::new(text.as_bytes()), META).map(|()| traces)
    }

    #[test]
    fn a_tree_is_its_calls_and_their_callers() {
        let traces = tree("[1,0,0,0,[2,7,1,8,[],\n5,8,0,0,[6,9,2,16,[]]]]").unwrap();
        let calls: Vec<_> = traces.calls.iter().map(|call| (call.function, call.caller)).collect();
        assert_eq!(calls, [(0, None), (7, Some(0)), (8, Some(0)), (9, Some(2))]);
        assert_eq!([1, 2, 5, 6].map(|id| traces.by_id[&id]), [0, 1, 2, 3]);
        assert!(tree("[]").unwrap().calls.is_empty());
    }

    #[test]
    fn what_is_no_tree_is_refused() {
        for text in ["[[1]]", "[1,2]", "[1,0,0,0,5]", "[1,0,0,[]]"] {
            assert!(matches!(tree(text), Err(Stop::Error(_))), "{text}");
        }
        for text in ["", "[1,0,0,0,[2", "[1,0,0,0,[]"] {
            assert!(matches!(tree(text), Err(Stop::End)), "{text}");
        }
    }
}
