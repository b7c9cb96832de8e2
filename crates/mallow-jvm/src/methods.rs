//! A JVM's methods: their names and lines, each read once and known again by what it points at.

use crate::layout::Layout;
use crate::memory::{Memory, bytes, int, short, word};
use mallow_scripts::{FrameTable, JavaMethod};
use mallow_wire::jvm::Place;
use rustc_hash::FxHashMap;

/// How long what was read is believed before some words of it are looked at again: its place is taken by another one only when a class loader has gone.
const BELIEVED_NS: u64 = 1_000_000_000;
/// A process that claims more methods, or names and lines of more bytes, has no more of them.
const METHODS_MAX: usize = 1 << 18;
const HELD_BYTES_MAX: usize = 128 << 20;
/// A table of lines is not longer.
const LINES_BYTES_MAX: u64 = 64 << 10;
/// Places of methods whose frames are kept.
const PLACES_MAX: usize = 1 << 18;

/// A method.
struct Method {
    constant: u64,
    pool: u64,
    /// The numbers of its names, in the pool.
    names: [u8; 4],
    /// Where its bytecode lies.
    code: u64,
    code_bytes: u64,
    method: JavaMethod,
    /// Its number: another one for each method that is read.
    serial: u32,
    looked_at_ns: u64,
}

/// The methods of a process.
#[derive(Default)]
pub(crate) struct Methods {
    known: FxHashMap<u64, Method>,
    serials: u32,
    /// Frames by the method's serial and the bytecode.
    places: FxHashMap<(u32, Option<u32>), u32>,
    held_bytes: usize,
}

impl Methods {
    /// The frame of a method, by its address, at a bytecode; none where there is no method.
    pub(crate) fn frame(
        &mut self,
        method: u64,
        bytecode: Option<u32>,
        now_ns: u64,
        layout: &Layout,
        memory: &impl Memory,
        table: &mut FrameTable,
    ) -> Option<u32> {
        self.look_at(method, now_ns, layout, memory)?;
        let known = self.known.get(&method)?;
        if self.places.len() >= PLACES_MAX {
            self.places.clear();
        }
        let place = self.places.entry((known.serial, bytecode));
        Some(*place.or_insert_with(|| table.number(known.method.frame(bytecode))))
    }

    /// The index of a bytecode of a method, by its address; none where it is none of it, and none at all where there is no method.
    pub(crate) fn bytecode(
        &mut self,
        method: u64,
        address: u64,
        now_ns: u64,
        layout: &Layout,
        memory: &impl Memory,
    ) -> Option<Option<u32>> {
        self.look_at(method, now_ns, layout, memory)?;
        let known = self.known.get(&method)?;
        let index = address.wrapping_sub(known.code);
        Some((index < known.code_bytes).then_some(index as u32))
    }

    /// Has a method known, as it is now.
    fn look_at(&mut self, method: u64, now_ns: u64, layout: &Layout, memory: &impl Memory) -> Option<()> {
        let is_address = method & 7 == 0 && method != 0 && method >> 47 == 0;
        is_address.then_some(())?;
        if let Some(known) = self.known.get_mut(&method) {
            let is_believed = now_ns.saturating_sub(known.looked_at_ns) < BELIEVED_NS;
            if is_believed || known.is_same(method, layout, memory) {
                known.looked_at_ns = if is_believed { known.looked_at_ns } else { now_ns };
                return Some(());
            }
            let gone = self.known.remove(&method)?;
            self.held_bytes = self.held_bytes.saturating_sub(gone.method.held_bytes());
        }
        if self.known.len() >= METHODS_MAX || self.held_bytes >= HELD_BYTES_MAX {
            return None;
        }
        let mut read = read(method, layout, memory)?;
        self.serials = self.serials.wrapping_add(1);
        (read.serial, read.looked_at_ns) = (self.serials, now_ns);
        self.held_bytes += read.method.held_bytes();
        self.known.insert(method, read);
        Some(())
    }
}

impl Method {
    /// Returns whether it is still there. Of a process that has ended nothing else is known.
    fn is_same(&self, method: u64, layout: &Layout, memory: &impl Memory) -> bool {
        let Some(constant) = word(memory, method.wrapping_add(layout.of(Place::MethodConst))) else {
            return true;
        };
        let pool = word(memory, constant.wrapping_add(layout.of(Place::ConstPool)));
        let names = names_of(constant, layout, memory);
        constant == self.constant && pool == Some(self.pool) && names == Some(self.names)
    }
}

/// The number of its name, and of what stands behind that: what its signature is.
fn names_of(constant: u64, layout: &Layout, memory: &impl Memory) -> Option<[u8; 4]> {
    crate::memory::array(memory, constant.wrapping_add(layout.of(Place::NameIndex)))
}

/// Reads what a method is.
fn read(method: u64, layout: &Layout, memory: &impl Memory) -> Option<Method> {
    let at = |address: u64, place: Place| address.wrapping_add(layout.of(place));
    let pointer = |address: u64, place: Place| word(memory, at(address, place));
    let number = |address: u64, place: Place| short(memory, at(address, place));
    let constant = pointer(method, Place::MethodConst)?;
    let pool = pointer(constant, Place::ConstPool)?;
    let class = pointer(pool, Place::PoolHolder)?;
    let text = |symbol: u64| {
        let length = number(symbol, Place::SymbolBytes)?;
        bytes(memory, at(symbol, Place::SymbolText), length.into(), usize::from(u16::MAX))
    };
    let named = |index: u16| {
        let place = at(pool, Place::PoolSize).wrapping_add(u64::from(index) * 8);
        text(word(memory, place)?)
    };
    let file = match layout.get(Place::PoolFile) {
        Some(_) => number(pool, Place::PoolFile)?,
        None => number(class, Place::KlassFile)?,
    };
    let file = if file == 0 { Vec::new() } else { named(file)? };
    let class_name = text(pointer(class, Place::KlassName)?)?;
    let name = named(number(constant, Place::NameIndex)?)?;
    let code = at(constant, Place::ConstSize);
    let code_bytes = u64::from(number(constant, Place::CodeBytes)?);
    let table = lines(constant, code.wrapping_add(code_bytes), layout, memory)?;
    let method = JavaMethod::new(layout.version, &class_name, &name, &file, &table);
    let names = names_of(constant, layout, memory)?;
    Some(Method { constant, pool, names, code, code_bytes, method, serial: 0, looked_at_ns: 0 })
}

/// Behind the bytecode comes the table of lines, which says itself where it ends, and what else the method has.
fn lines(constant: u64, from: u64, layout: &Layout, memory: &impl Memory) -> Option<Vec<u8>> {
    const HAS_LINES: u16 = 1;
    let at = |place: Place| constant.wrapping_add(layout.of(place));
    if short(memory, at(Place::ConstFlags))? & HAS_LINES == 0 {
        return Some(Vec::new());
    }
    let words = u64::try_from(int(memory, at(Place::ConstWords))?).ok()?;
    let behind = constant.wrapping_add(words * 8).checked_sub(from)?.min(LINES_BYTES_MAX);
    bytes(memory, from, behind, LINES_BYTES_MAX as usize)
}

#[cfg(test)]
pub(crate) mod made_up {
    //! Methods that a test writes down.

    use super::*;
    use crate::memory::made_up::MadeUp;

    pub(crate) const PLACES: [(Place, u64); 14] = [
        (Place::MethodConst, 8),
        (Place::ConstPool, 8),
        (Place::ConstWords, 16),
        (Place::ConstFlags, 20),
        (Place::CodeBytes, 22),
        (Place::NameIndex, 24),
        (Place::PoolHolder, 8),
        (Place::PoolFile, 16),
        (Place::KlassName, 16),
        (Place::KlassLoader, 24),
        (Place::SymbolBytes, 4),
        (Place::SymbolText, 6),
        (Place::ConstSize, 48),
        (Place::PoolSize, 32),
    ];

    /// A method of 10 bytes of code in the file `Cart.java`, with what belongs to it at `method` and the 0x1000 bytes behind; its lines are 7 from
    /// bytecode 0 and 9 from bytecode 5 on.
    pub(crate) fn put_method(memory: &MadeUp, method: u64, class: &str, name: &str) {
        memory.put(method, &[0; 0x1000]);
        let [constant, pool, klass] = [0x100, 0x200, 0x300].map(|at| method + at);
        let symbols = [0x400, 0x500, 0x600].map(|at| method + at);
        memory.put_word(method + 8, constant);
        memory.put_word(constant + 8, pool);
        memory.put_int(constant + 16, 8);
        memory.put(constant + 20, &[1, 0, 10, 0, 1, 0, 7, 7]);
        memory.put(constant + 48 + 10, &[7, 5 << 3 | 2, 0]);
        memory.put_word(pool + 8, klass);
        memory.put(pool + 16, &[2, 0]);
        memory.put_word(klass + 16, symbols[0]);
        for (index, symbol) in [(1, symbols[1]), (2, symbols[2])] {
            memory.put_word(pool + 32 + index * 8, symbol);
        }
        for (symbol, text) in symbols.into_iter().zip([class, name, "Cart.java"]) {
            memory.put(symbol + 4, &(text.len() as u16).to_le_bytes());
            memory.put(symbol + 6, text.as_bytes());
        }
    }

    /// Where its bytecode begins.
    pub(crate) fn bytecode_of(method: u64) -> u64 {
        method + 0x100 + 48
    }
}

#[cfg(test)]
mod tests {
    use super::made_up::{PLACES, bytecode_of, put_method};
    use super::*;
    use crate::memory::Unreadable;
    use crate::memory::made_up::MadeUp;

    struct Process {
        memory: MadeUp,
        methods: Methods,
        table: FrameTable,
    }

    impl Process {
        fn shown(&mut self, method: u64, bytecode: Option<u32>, now_ns: u64) -> Option<String> {
            let layout = Layout::made_up(17, &PLACES);
            let (memory, table) = (&self.memory, &mut self.table);
            let number = self.methods.frame(method, bytecode, now_ns, &layout, &memory, table)?;
            let frame = self.table.frame(number)?;
            Some(format!("{} {:?} {:?}", frame.function, frame.file.as_deref().unwrap_or("-"), frame.line))
        }
    }

    fn with_method() -> Process {
        let memory = MadeUp::default();
        put_method(&memory, 0x8000, "shop/Cart", "add");
        Process { memory, methods: Methods::default(), table: FrameTable::default() }
    }

    #[test]
    fn a_method_has_its_name_and_its_lines_and_is_read_once() {
        let mut process = with_method();
        let mut shown = |bytecode| process.shown(0x8000, bytecode, 5).unwrap();
        assert_eq!(shown(Some(4)), "shop.Cart.add \"shop/Cart.java\" Some(7)");
        assert_eq!(shown(Some(5)), "shop.Cart.add \"shop/Cart.java\" Some(9)");
        assert_eq!(shown(None), "shop.Cart.add \"shop/Cart.java\" None");
        let reads = process.memory.reads.get();
        process.shown(0x8000, Some(7), BELIEVED_NS).unwrap();
        assert_eq!(process.memory.reads.get(), reads);
        let layout = Layout::made_up(17, &PLACES);
        let mut bytecode =
            |address| process.methods.bytecode(0x8000, address, 5, &layout, &&process.memory).unwrap();
        let first = bytecode_of(0x8000);
        assert_eq!(
            [first, first + 9, first + 10, first - 1].map(&mut bytecode),
            [Some(0), Some(9), None, None]
        );
    }

    #[test]
    fn what_takes_a_methods_place_is_another_one() {
        let mut process = with_method();
        assert!(process.shown(0x8000, Some(0), 0).unwrap().starts_with("shop.Cart.add "));
        put_method(&process.memory, 0x8000, "shop/Cart", "remove");
        process.memory.put(0x8000 + 0x100 + 26, &[8]);
        assert!(process.shown(0x8000, Some(0), BELIEVED_NS - 1).unwrap().starts_with("shop.Cart.add "));
        assert!(process.shown(0x8000, Some(0), BELIEVED_NS).unwrap().starts_with("shop.Cart.remove "));
        // The process has ended: what was read stays.
        process.memory.refuses.set(Some(Unreadable::Gone));
        assert!(process.shown(0x8000, Some(0), 9 * BELIEVED_NS).unwrap().starts_with("shop.Cart.remove "));
        assert_eq!(process.shown(0x9000, Some(0), 0), None);
    }

    #[test]
    fn what_is_no_method_is_none() {
        let mut process = with_method();
        for method in [0, 7, 0x8001, 1 << 47, u64::MAX - 7, 0x4_0000] {
            assert_eq!(process.shown(method, None, 0), None);
        }
        // As many lines as fit into memory, and names that lie nowhere.
        process.memory.put_int(0x8000 + 0x100 + 16, -1);
        assert_eq!(process.shown(0x8000, None, 0), None);
        put_method(&process.memory, 0x8000, "a", "b");
        process.memory.put(0x8000 + 0x400 + 4, &[0xff, 0xff]);
        assert_eq!(process.shown(0x8000, None, 0), None);
    }
}
