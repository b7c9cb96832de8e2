//! A step of a walk up a stack, where it goes through a JVM's code.

use crate::blobs::{BlobKind, Blobs, FRAME_BYTES_MAX, interpreter};
use crate::innermost::{BEFORE, BEHIND, Leave, leave};
use crate::layout::{Exports, Layout};
use crate::memory::{Memory, Unreadable, array, word};
use crate::methods::Methods;
use crate::scopes::{Scope, scopes};
use mallow_base::{Frame, Language};
use mallow_scripts::FrameTable;
use mallow_wire::jvm::{Place, VERSIONS};
use rustc_hash::FxHashMap;
use std::ops::Range;
use std::sync::Arc;

/// Where a walk stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct At {
    /// An instruction, or behind a call.
    pub pc: u64,
    /// The stack pointer.
    pub sp: u64,
    /// The frame pointer register.
    pub bp: u64,
    /// The register in which the interpreter has the bytecode at hand; of the innermost frame alone.
    pub r13: Option<u64>,
    /// The function was interrupted at `pc`, and is not behind a call.
    pub is_exact: bool,
}

/// Why no frames of a JVM are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unread {
    /// The kernel does not let us read the process.
    Refused,
    /// Nobody knows what the tables of this version mean.
    Version(u32),
    /// The tables are not there, or have other entries.
    Layout,
}

/// A JVM in a process.
pub struct Jvm<M> {
    memory: M,
    exports: Exports,
    state: State,
    blobs: Blobs,
    codes: FxHashMap<(u64, bool), Code>,
    methods: Methods,
    now_ns: u64,
}

enum State {
    /// It may not have begun. Its tables are there, or have been asked for so often.
    Beginning {
        layout: Result<Box<Layout>, u32>,
        again_ns: u64,
    },
    Met(Box<Met>),
    Unread(Unread),
}

struct Met {
    layout: Layout,
    bounds: Range<u64>,
    interpreter: Range<u64>,
    /// Where the stub that calls Java is called back.
    call_stub: u64,
    looked_at_ns: u64,
}

/// What was found out at an address.
#[derive(Clone)]
struct Code {
    kind: Kind,
    frame_bytes: u64,
    /// Where the piece of code begins, and what it is known by.
    piece: Option<(u64, u64)>,
    /// Innermost first.
    frames: Arc<[u32]>,
    /// A call may return here.
    is_behind_call: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Left by the frame pointer.
    ByPointer,
    /// Its length is known.
    Sized(Leave),
    /// The interpreter's.
    Interpreted,
    /// Given up: the frame says where it really stands, at this offset from its end inside.
    Abandoned(u64),
    /// A stub's, of which nobody says how it is left.
    Stub,
}

/// Of interpreted frames, from the frame pointer.
const SENDER_SP: i64 = -8;
const METHOD: i64 = -24;
const BYTECODE: i64 = -64;

/// Addresses of code of which is kept what stands there.
const CODES_MAX: usize = 1 << 17;

impl<M: Memory> Jvm<M> {
    /// A JVM whose library has been mapped into a process, and may not have begun.
    pub fn new(exports: Exports, memory: M) -> Jvm<M> {
        let state = State::Beginning { layout: Err(0), again_ns: 0 };
        let (blobs, codes, methods) = (Blobs::default(), FxHashMap::default(), Methods::default());
        Jvm { memory, exports, state, blobs, codes, methods, now_ns: 0 }
    }

    /// The same in another process, which was forked.
    pub fn forked<N: Memory>(&self, memory: N) -> Jvm<N> {
        Jvm::new(self.exports, memory)
    }

    /// Why its frames are not read, if they are not.
    pub fn unread(&self) -> Option<Unread> {
        match self.state {
            State::Unread(why) => Some(why),
            _ => None,
        }
    }

    /// A walk begins at this time of the process's.
    pub fn begin(&mut self, now_ns: u64) {
        const AGAIN_NS: u64 = 5_000_000;
        const TRIES_MAX: u32 = 16;
        const BOUNDS_NS: u64 = 1_000_000_000;
        self.now_ns = now_ns;
        match &mut self.state {
            State::Beginning { layout, again_ns } if now_ns >= *again_ns => {
                // The tables are many; where the code lies is few words.
                let tries = layout.as_ref().map_or_else(|tries| *tries + 1, |_| 0);
                let read = match layout {
                    Ok(layout) => Ok(layout.clone()),
                    Err(_) => read_layout(&self.exports, &self.memory),
                };
                let again_ns = now_ns.saturating_add(AGAIN_NS << tries.min(6));
                self.state = match read {
                    Ok(layout) => match meet(&layout, &self.memory, now_ns) {
                        Some(met) => State::Met(Box::new(met)),
                        None => State::Beginning { layout: Ok(layout), again_ns },
                    },
                    Err(Some(why)) if tries >= TRIES_MAX || why != Unread::Layout => State::Unread(why),
                    Err(_) => State::Beginning { layout: Err(tries), again_ns },
                };
            }
            State::Met(met) if now_ns.saturating_sub(met.looked_at_ns) >= BOUNDS_NS => {
                met.looked_at_ns = now_ns;
                met.bounds = bounds(&met.layout, &self.memory).unwrap_or_else(|| met.bounds.clone());
            }
            _ => {}
        }
    }

    /// Returns whether an address lies in code of the JVM's making whose frames are read.
    pub fn holds(&self, pc: u64) -> bool {
        matches!(&self.state, State::Met(met) if met.bounds.contains(&pc))
    }

    /// Returns whether an address may lie in code of the JVM's making: any may, as long as nobody knows where that lies.
    pub fn may_hold(&self, pc: u64) -> bool {
        !matches!(&self.state, State::Met(met) if !met.bounds.contains(&pc))
    }

    /// Goes from a frame in such code to its caller. The frames that stand there go to `stood`, innermost first, by their numbers in `table`;
    /// `stack` has the words of the stack. None when the caller is not found; without any frames nothing is known of the place.
    pub fn step(
        &mut self,
        at: &At,
        stack: &impl Fn(u64) -> Option<u64>,
        table: &mut FrameTable,
        stood: &mut Vec<u32>,
    ) -> Option<At> {
        let code = self.code(at.pc, at.is_exact, table)?;
        stood.extend(code.frames.iter());
        match code.kind {
            Kind::Interpreted => self.interpreted(at, stack, table, stood),
            Kind::ByPointer => by_pointer(at, stack),
            Kind::Stub => self.stub(at, &code, stack, table),
            Kind::Sized(leave) => {
                let caller = sized(at, leave, code.frame_bytes, stack)?;
                self.may_call(&caller, at.is_exact, table).then_some(caller)
            }
            Kind::Abandoned(offset) => {
                let original = stack(at.sp.wrapping_add(offset));
                let of_original = original.filter(|pc| *pc != at.pc && self.holds(*pc));
                let of_original = of_original.and_then(|pc| self.code(pc, false, table));
                stood.extend(of_original.iter().flat_map(|code| code.frames.iter()));
                sized(at, Leave::Whole, code.frame_bytes, stack).filter(|caller| self.holds(caller.pc))
            }
        }
    }

    /// Returns whether somebody calls from there. Of an interrupted frame what was taken for the return address may be something else.
    fn may_call(&mut self, caller: &At, is_doubtful: bool, table: &mut FrameTable) -> bool {
        let is_call = |code: Code| code.is_behind_call;
        self.holds(caller.pc) && (!is_doubtful || self.code(caller.pc, false, table).is_some_and(is_call))
    }

    /// What stands at an address.
    fn code(&mut self, pc: u64, is_exact: bool, table: &mut FrameTable) -> Option<Code> {
        let State::Met(met) = &self.state else { return None };
        let (layout, memory) = (&met.layout, &self.memory);
        if let Some(code) = self.codes.get(&(pc, is_exact))
            && code.piece.is_none_or(|(start, mark)| self.blobs.has(start, mark, self.now_ns, layout, memory))
        {
            return Some(code.clone());
        }
        let mut resolver = AddressResolver {
            met,
            memory,
            blobs: &mut self.blobs,
            methods: &mut self.methods,
            now_ns: self.now_ns,
            table,
        };
        let code = resolver.learn(pc, is_exact)?;
        if self.codes.len() >= CODES_MAX {
            self.codes.clear();
        }
        self.codes.insert((pc, is_exact), code.clone());
        Some(code)
    }

    fn interpreted(
        &mut self,
        at: &At,
        stack: &impl Fn(u64) -> Option<u64>,
        table: &mut FrameTable,
        stood: &mut Vec<u32>,
    ) -> Option<At> {
        if let Some((method, bytecode)) = self.interpreted_method(at, stack) {
            let State::Met(met) = &self.state else { return None };
            let frame = self.methods.frame(method, bytecode, self.now_ns, &met.layout, &self.memory, table);
            stood.extend(frame);
            return interpreted_caller(at, stack).filter(|caller| self.holds(caller.pc));
        }
        if !at.is_exact {
            return None;
        }
        // It has no frame yet, a part of one, or none any more.
        const PART_BYTES_MAX: u64 = 80;
        stood.push(table.number(stub_frame("Stub Interpreter")));
        let of_part = by_pointer(at, stack).filter(|_| at.bp.wrapping_sub(at.sp) <= PART_BYTES_MAX);
        for mut caller in [sized(at, Leave::AtTop, 0, stack), of_part].into_iter().flatten() {
            if self.may_call(&caller, true, table) {
                // Where the caller's frame ends is in the register, if it is near.
                let is_near =
                    |sp: &u64| sp.is_multiple_of(8) && sp.wrapping_sub(caller.sp) <= FRAME_BYTES_MAX;
                caller.sp = at.r13.filter(is_near).unwrap_or(caller.sp);
                return Some(caller);
            }
        }
        None
    }

    /// The method of an interpreted frame and its bytecode.
    fn interpreted_method(
        &mut self,
        at: &At,
        stack: &impl Fn(u64) -> Option<u64>,
    ) -> Option<(u64, Option<u32>)> {
        let State::Met(met) = &self.state else { return None };
        let slot = |offset: i64| at.bp.wrapping_add_signed(offset);
        if !at.bp.is_multiple_of(8) || slot(BYTECODE) < at.sp || at.bp < at.sp {
            return None;
        }
        let (method, saved) = (stack(slot(METHOD))?, stack(slot(BYTECODE))?);
        let mut bytecode =
            |address: u64| self.methods.bytecode(method, address, self.now_ns, &met.layout, &self.memory);
        let of_saved = bytecode(saved)?;
        let of_register = at.r13.filter(|_| at.is_exact).and_then(|address| bytecode(address).flatten());
        Some((method, of_register.or(of_saved)))
    }

    /// A stub: one without a frame of its own, or one whose frame is left by its length or by the frame pointer.
    fn stub(
        &mut self,
        at: &At,
        code: &Code,
        stack: &impl Fn(u64) -> Option<u64>,
        table: &mut FrameTable,
    ) -> Option<At> {
        let of_length = sized(at, Leave::Whole, code.frame_bytes, stack);
        let found = [sized(at, Leave::AtTop, 0, stack), of_length, sized(at, Leave::Pushed, 0, stack)];
        for caller in found.into_iter().flatten() {
            if self.may_call(&caller, true, table) {
                return Some(caller);
            }
        }
        let caller = by_pointer(at, stack)?;
        // At the entry of a method its barrier keeps a word for another stack pointer.
        const KEPT: u64 = u64::MAX;
        let caller = if caller.pc == KEPT {
            At { pc: stack(caller.sp)?, sp: caller.sp.checked_add(8)?, ..caller }
        } else {
            caller
        };
        (!at.is_exact || self.may_call(&caller, true, table)).then_some(caller)
    }
}

/// The caller of a frame whose length is known.
fn sized(at: &At, leave: Leave, frame_bytes: u64, stack: &impl Fn(u64) -> Option<u64>) -> Option<At> {
    let slot = match leave {
        Leave::AtTop => at.sp,
        Leave::Pushed => at.sp.checked_add(8)?,
        Leave::Whole | Leave::WithoutPointer => at.sp.checked_add(frame_bytes.checked_sub(8)?)?,
    };
    let bp = match leave {
        Leave::AtTop | Leave::WithoutPointer => at.bp,
        Leave::Whole | Leave::Pushed => stack(slot.checked_sub(8)?)?,
    };
    slot.is_multiple_of(8).then_some(())?;
    Some(At { pc: stack(slot)?, sp: slot.checked_add(8)?, bp, ..At::default() })
}

fn by_pointer(at: &At, stack: &impl Fn(u64) -> Option<u64>) -> Option<At> {
    let is_above = at.bp.is_multiple_of(8) && at.bp >= at.sp;
    is_above.then_some(())?;
    let slot = at.bp.checked_add(8)?;
    Some(At { pc: stack(slot)?, sp: slot.checked_add(8)?, bp: stack(at.bp)?, ..At::default() })
}

/// The caller of an interpreted frame, whose own frame ended before its callee made room for more locals.
fn interpreted_caller(at: &At, stack: &impl Fn(u64) -> Option<u64>) -> Option<At> {
    // A call by a method handle has taken its last words away.
    const TAKEN_BYTES_MAX: u64 = 64;
    let caller = by_pointer(at, stack)?;
    let sender = stack(at.bp.wrapping_add_signed(SENDER_SP))?;
    let is_near = sender.wrapping_sub(caller.sp.saturating_sub(TAKEN_BYTES_MAX)) <= FRAME_BYTES_MAX;
    (sender.is_multiple_of(8) && is_near).then(|| At { sp: caller.sp.max(sender), ..caller })
}

/// The bytes in front of an address, and those from it on.
fn bytes_around(pc: u64, memory: &impl Memory) -> Option<([u8; BEFORE], [u8; BEHIND])> {
    let all: [u8; BEFORE + BEHIND] = array(memory, pc.checked_sub(BEFORE as u64)?)?;
    let (before, behind) = all.split_first_chunk()?;
    Some((*before, behind.try_into().ok()?))
}

/// Returns whether a call stands in front of an address: one of the next instructions, or by a register.
fn is_behind_call(pc: u64, memory: &impl Memory) -> bool {
    let before: Option<[u8; 5]> = array(memory, pc.wrapping_sub(5));
    matches!(before, Some([0xe8, ..] | [.., 0xff, 0xd0..=0xd7]))
}

fn stub_frame(name: &str) -> Frame {
    Frame { function: name.to_owned(), language: Language::Native, ..Frame::default() }
}

/// What an address is found out with.
struct AddressResolver<'a, M> {
    met: &'a Met,
    memory: &'a M,
    blobs: &'a mut Blobs,
    methods: &'a mut Methods,
    now_ns: u64,
    table: &'a mut FrameTable,
}

impl<M: Memory> AddressResolver<'_, M> {
    fn plain(&self, kind: Kind) -> Code {
        Code { kind, frame_bytes: 0, piece: None, frames: Arc::new([]), is_behind_call: true }
    }

    fn learn(&mut self, pc: u64, is_exact: bool) -> Option<Code> {
        let (met, memory) = (self.met, self.memory);
        let layout = &met.layout;
        if pc == met.call_stub {
            return Some(self.plain(Kind::ByPointer));
        }
        if met.interpreter.contains(&pc) {
            return Some(self.plain(Kind::Interpreted));
        }
        let blob = self.blobs.around(pc, self.now_ns, layout, memory)?;
        let piece = Some((blob.start, blob.mark));
        let left = blob.frame_complete.map(|complete| complete.saturating_sub(pc.saturating_sub(blob.code)));
        let around = || bytes_around(pc, memory).map(|(before, behind)| leave(&before, &behind, left));
        let how = is_exact.then(around).flatten().unwrap_or(Leave::Whole);
        if let BlobKind::Stub(name) = &blob.kind {
            // Frames of stubs matter where the time is in them.
            let frames = is_exact.then(|| self.table.number(stub_frame(name))).into_iter().collect();
            let is_whole = blob.frame_bytes >= 16 && !is_exact;
            let kind = if is_whole { Kind::Sized(Leave::Whole) } else { Kind::Stub };
            return Some(Code { piece, frames, frame_bytes: blob.frame_bytes, ..self.plain(kind) });
        }
        let frame_bytes = blob.frame_bytes;
        if let Some(offset) = blob.original_pc(pc, layout, memory) {
            return Some(Code { piece, frame_bytes, ..self.plain(Kind::Abandoned(offset)) });
        }
        let found = scopes(&blob, pc, is_exact, layout, memory);
        let mut frames = Vec::new();
        for Scope { method, bytecode } in found.methods {
            // Of a small method the compiler may note no place at all.
            let bytecode = bytecode.or(is_exact.then_some(0));
            let frame = self.methods.frame(method, bytecode, self.now_ns, layout, memory, self.table);
            frames.extend(frame);
        }
        let is_behind_call =
            found.is_of_address || blob.kind == BlobKind::Native || is_behind_call(pc, memory);
        let frames = frames.into();
        Some(Code { piece, frame_bytes, frames, is_behind_call, ..self.plain(Kind::Sized(how)) })
    }
}

/// Reads where a JVM keeps things. None in place of a reason when it has ended, or its library is only just being mapped.
fn read_layout(exports: &Exports, memory: &impl Memory) -> Result<Box<Layout>, Option<Unread>> {
    let mut byte = [0];
    match exports.read_first(memory, &mut byte) {
        Err(Unreadable::Refused) => return Err(Some(Unread::Refused)),
        Err(_) => return Err(None),
        Ok(()) => {}
    }
    let layout = Layout::read(exports, memory).ok_or(Some(Unread::Layout))?;
    if layout.version > 0 && !(VERSIONS[0]..=VERSIONS[1]).contains(&layout.version) {
        return Err(Some(Unread::Version(layout.version)));
    }
    let is_known = layout.version > 0 && layout.is_enough();
    if is_known { Ok(Box::new(layout)) } else { Err(Some(Unread::Layout)) }
}

/// A JVM that has made code; none before that.
fn meet(layout: &Layout, memory: &impl Memory, now_ns: u64) -> Option<Met> {
    let bounds = bounds(layout, memory)?;
    let interpreter = interpreter(layout, memory)?;
    let call_stub = word(memory, layout.of(Place::CallStub)).filter(|stub| *stub != 0)?;
    Some(Met { layout: layout.clone(), bounds, interpreter, call_stub, looked_at_ns: now_ns })
}

/// Where its code lies; none before there is some.
fn bounds(layout: &Layout, memory: &impl Memory) -> Option<Range<u64>> {
    let low = word(memory, layout.of(Place::LowBound)).filter(|low| *low != 0)?;
    let high = word(memory, layout.of(Place::HighBound))?;
    (low < high).then_some(low..high)
}

#[cfg(test)]
#[path = "jvm_tests.rs"]
mod tests;
