//! Which boxes a picture has, in the order in which they stand in it.
//!
//! A box is never wider than its caller's, so whatever is at least so wide is whole stacks from the root: what is left out are their tips.

use mallow_stacks::{FlameBox, FlameTotal, FlameWeight, Flames};

/// Boxes that a picture holds. A browser draws fewer at a time, and gets at the others by zooming.
const BOXES_MAX: usize = 100_000;

/// The boxes that are kept, each before those that it calls.
#[derive(Debug)]
pub(crate) struct KeptBoxes<'a> {
    pub(crate) boxes: Vec<KeptBox<'a>>,
    /// How many are not.
    pub(crate) left_out: usize,
    /// None of those is wider than this.
    pub(crate) left_out_width: u64,
}

/// A box and where it stands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeptBox<'a> {
    pub(crate) this: &'a FlameBox,
    /// What it weighs with all that it calls.
    pub(crate) weight: FlameWeight,
    /// How wide that is.
    pub(crate) width: u64,
    /// How many calls are below it; 0 for the root.
    pub(crate) depth: u32,
    /// How much width is to its left.
    pub(crate) left: u64,
}

impl KeptBoxes<'_> {
    /// The widest boxes.
    pub(crate) fn of(flames: &Flames) -> KeptBoxes<'_> {
        KeptBoxes::at_most(flames, BOXES_MAX)
    }

    pub(crate) fn at_most(flames: &Flames, boxes_max: usize) -> KeptBoxes<'_> {
        let totals = flames.totals();
        let (widest, left_out_width) = widest(&totals, boxes_max);
        let callees = Callees::of(flames, widest);
        let place = |number: u32, depth, left| {
            let FlameTotal { weight, width } = totals[number as usize];
            (number, KeptBox { this: &flames.boxes[number as usize], weight, width, depth, left })
        };
        let mut boxes = Vec::new();
        let mut open = vec![place(0, 0, 0)];
        while let Some((number, kept)) = open.pop() {
            boxes.push(kept);
            let mut left = kept.left;
            let begin = open.len();
            for &callee in callees.of_box(number) {
                open.push(place(callee, kept.depth + 1, left));
                left = left.saturating_add(totals[callee as usize].width);
            }
            open[begin..].reverse();
        }
        let left_out = flames.boxes.len() - boxes.len();
        KeptBoxes { boxes, left_out, left_out_width }
    }

    /// The root.
    pub(crate) fn whole(&self) -> &KeptBox<'_> {
        &self.boxes[0]
    }
}

/// The numbers of so many of the widest boxes but for the root, callers first, and how wide the others are at most. What has no width is
/// never drawn.
fn widest(totals: &[FlameTotal], boxes_max: usize) -> (Vec<u32>, u64) {
    let mut numbers: Vec<u32> = (1..totals.len() as u32).collect();
    let width = |number: &u32| totals[*number as usize].width;
    numbers.retain(|number| width(number) > 0);
    if numbers.len() < boxes_max {
        return (numbers, 0);
    }
    // Of boxes of one width callers come first, so that none is kept without its caller.
    numbers.select_nth_unstable_by_key(boxes_max - 1, |number| (std::cmp::Reverse(width(number)), *number));
    let left_out_width = width(&numbers[boxes_max - 1]);
    numbers.truncate(boxes_max - 1);
    (numbers, left_out_width)
}

/// What each box calls, in the order of the names, so that two graphs of one program look alike.
struct Callees {
    /// Where those of a box begin.
    begins: Vec<u32>,
    numbers: Vec<u32>,
}

impl Callees {
    fn of(flames: &Flames, mut numbers: Vec<u32>) -> Callees {
        let rank = ranks(flames);
        let boxes = &flames.boxes;
        numbers.sort_unstable_by_key(|number| {
            let this = &boxes[*number as usize];
            (this.parent, this.function.map(|function| rank[function.0 as usize]))
        });
        let mut begins = vec![0; boxes.len() + 1];
        for number in &numbers {
            begins[boxes[*number as usize].parent as usize + 1] += 1;
        }
        for at in 1..begins.len() {
            begins[at] += begins[at - 1];
        }
        Callees { begins, numbers }
    }

    fn of_box(&self, number: u32) -> &[u32] {
        &self.numbers[self.begins[number as usize] as usize..self.begins[number as usize + 1] as usize]
    }
}

/// The place of each function in the order of their names.
fn ranks(flames: &Flames) -> Vec<u32> {
    let mut order: Vec<u32> = (0..flames.functions.len() as u32).collect();
    order.sort_by_key(|function| {
        let function = &flames.functions[*function as usize];
        (&function.name, function.language, &function.home)
    });
    let mut ranks = vec![0; order.len()];
    for (rank, function) in order.iter().enumerate() {
        ranks[*function as usize] = rank as u32;
    }
    ranks
}
