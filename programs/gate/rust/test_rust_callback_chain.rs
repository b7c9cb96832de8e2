//! A promise with a chain of 16 futures, each derived from the one before by a boxed closure.
//!
//! 1000 operations x (1 state + 16 links x (1 state + 1 closure)) = 33000.
//!
//! expect: allocations=33000 remaining=0 descriptors=0 ops=1000
#![allow(unexpected_cfgs)]

use mallow_markers::{keep, measure, ops};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

const OPS: usize = 1000;
const LINKS: usize = 16;

#[derive(Default)]
struct State {
    value: Cell<usize>,
    callback: RefCell<Option<Box<dyn FnOnce(usize)>>>,
}

impl State {
    fn fulfil(&self, value: usize) {
        self.value.set(value);
        if let Some(callback) = self.callback.take() {
            callback(value);
        }
    }

    fn then(&self, function: fn(usize) -> usize) -> Rc<State> {
        let derived = Rc::new(State::default());
        let target = Rc::clone(&derived);
        *self.callback.borrow_mut() = Some(Box::new(move |value| target.fulfil(function(value))));
        derived
    }
}

fn run() {
    #[cfg(seed_fd)]
    std::mem::forget(std::fs::File::open("/dev/null")); // SEED_FD
    for operation in 0..OPS {
        let promise = Rc::new(State::default());
        let last = (0..LINKS).fold(Rc::clone(&promise), |last, _| last.then(|value| value + 1));
        promise.fulfil(operation);
        assert!(keep(last).value.get() == operation + LINKS);
        #[cfg(seed_alloc)]
        drop(keep(Box::new([0u8; 24]))); // SEED_ALLOC
        #[cfg(seed_leak)]
        if operation % 100 == 0 {
            Box::leak(keep(Box::new([0u8; 40]))); // SEED_LEAK
        }
    }
}

fn main() {
    ops(OPS as u64);
    measure("callback_chain", run);
}
