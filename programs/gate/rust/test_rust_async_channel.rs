//! A producer on another thread moves messages through a channel with room for 8; the consumer drops them.
//!
//! 1 channel (Arc) + 1 ring + 1000 operations x 1 message = 1002. The thread and the two channels that start and end its
//! work live as long as the program. Mutex and Condvar allocate nothing on Linux.
//!
//! expect: allocations=1002 remaining=0 descriptors=0 ops=1000
#![allow(unexpected_cfgs, unused_imports)]

use mallow_markers::{keep, measure, ops};
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex};

const OPS: usize = 1000;

struct Channel<T> {
    ring: Mutex<VecDeque<T>>,
    changed: Condvar,
    room: usize,
}

impl<T> Channel<T> {
    fn with_room(room: usize) -> Arc<Channel<T>> {
        let ring = Mutex::new(VecDeque::with_capacity(room));
        Arc::new(Channel { ring, changed: Condvar::new(), room })
    }

    fn push(&self, item: T) {
        let ring = self.ring.lock().unwrap();
        let mut ring = self.changed.wait_while(ring, |ring| ring.len() == self.room).unwrap();
        ring.push_back(item);
        self.changed.notify_all();
    }

    fn pop(&self) -> T {
        let ring = self.ring.lock().unwrap();
        let mut ring = self.changed.wait_while(ring, |ring| ring.is_empty()).unwrap();
        self.changed.notify_all();
        ring.pop_front().unwrap()
    }
}

type Messages = Arc<Channel<Box<usize>>>;

fn produce(orders: Arc<Channel<Messages>>, done: Arc<Channel<()>>) {
    loop {
        let messages = orders.pop();
        for operation in 0..OPS {
            messages.push(Box::new(operation));
            #[cfg(seed_alloc)]
            drop(keep(Box::new([0u8; 24]))); // SEED_ALLOC
            #[cfg(seed_leak)]
            if operation % 100 == 0 {
                Box::leak(keep(Box::new([0u8; 40]))); // SEED_LEAK
            }
        }
        drop(messages);
        done.push(());
    }
}

fn run(orders: &Channel<Messages>, done: &Channel<()>) {
    let messages = Channel::with_room(8);
    #[cfg(seed_fd)]
    std::mem::forget(std::fs::File::open("/dev/null")); // SEED_FD
    orders.push(Arc::clone(&messages));
    for operation in 0..OPS {
        assert!(*messages.pop() == operation);
    }
    done.pop();
}

fn main() {
    let orders = Channel::with_room(1);
    let done = Channel::with_room(1);
    std::thread::spawn({
        let (orders, done) = (Arc::clone(&orders), Arc::clone(&done));
        move || produce(orders, done)
    });
    ops(OPS as u64);
    measure("async_channel", || run(&orders, &done));
}
