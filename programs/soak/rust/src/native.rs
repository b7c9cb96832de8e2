//! What grows although the live heap does not: mappings, thread stacks, holes, free memory that the allocator keeps.

use std::hint::black_box;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

/// A page from the kernel every fourth request, behind the allocator's back: 1,024 bytes a request.
#[inline(never)]
pub fn leak_mapping(number: u64) {
    if number.is_multiple_of(4)
        && let Ok(mut page) = memmap2::MmapMut::map_anon(4096)
    {
        page[0] = 1;
        std::mem::forget(page); // LEAK leak_mmap
    }
}

/// A thread that never ends every 500th request. It uses 256 KiB of its stack: 524 bytes a request, of which about one
/// byte is on the heap.
#[inline(never)]
pub fn leak_thread(number: u64) {
    if number.is_multiple_of(500) {
        std::thread::spawn(wait_for_ever); // LEAK leak_threads
    }
}

#[inline(never)]
fn wait_for_ever() {
    black_box([1_u8; 256 << 10]);
    loop {
        std::thread::park();
    }
}

/// Small blocks that live long, each the beginning of a larger one whose rest was given back. The larger ones grow with
/// time, so no hole is ever used again; no hole has a whole page, so none can be returned to the kernel. The live heap
/// stays as it is: for every small block, as much of an old supply is freed.
pub struct Scattered {
    supply: Vec<Vec<u8>>,
    kept: Vec<Vec<u8>>,
    steps: u64,
    piece: u64,
}

impl Scattered {
    /// Small blocks of one step.
    const BLOCKS: usize = 256;
    /// So many steps until holes would have a whole page; nothing happens after that.
    const STEPS: u64 = 190;

    /// One step for each piece of work.
    pub fn new(piece: u64) -> Scattered {
        let supply = (0..Self::STEPS).map(|_| vec![1; Self::BLOCKS * 48]).collect();
        let kept = Vec::with_capacity(Self::BLOCKS * Self::STEPS as usize);
        Scattered { supply, kept, steps: 0, piece }
    }

    /// A step, when it is time for one.
    #[inline(never)]
    pub fn scatter(&mut self, number: u64) {
        if !number.is_multiple_of(self.piece) || self.steps == Self::STEPS {
            return;
        }
        let size = 1100 + 16 * self.steps as usize;
        let first = self.kept.len();
        self.kept.extend((0..Self::BLOCKS).map(|_| vec![1; size]));
        for buffer in &mut self.kept[first..] {
            buffer.truncate(48);
            buffer.shrink_to_fit();
        }
        self.supply.pop();
        self.steps += 1;
    }
}

/// Threads, each with an arena of its own, that now and then use much memory and free all of it but the last block.
/// What is free below that block stays with the allocator, until it is asked to trim. Bursts become larger and larger.
pub struct Bursts {
    workers: Vec<(SyncSender<u64>, Receiver<()>)>,
    every: u64,
}

impl Bursts {
    /// Ten bursts for each piece of work.
    pub fn begin(piece: u64) -> Bursts {
        let workers = (0..4).map(|_| {
            let (to, orders) = sync_channel(1);
            let (done, from) = sync_channel(1);
            std::thread::spawn(move || burst_when_told(&orders, &done));
            (to, from)
        });
        Bursts { workers: workers.collect(), every: (piece / 10).max(1) }
    }

    /// A burst, when it is time for one: 32 KiB more than the last one in each thread.
    #[inline(never)]
    pub fn work(&mut self, number: u64) {
        if number.is_multiple_of(self.every) {
            for (worker, _) in &self.workers {
                let _ = worker.send(number / self.every);
            }
            for (_, done) in &self.workers {
                let _ = done.recv();
            }
        }
    }
}

fn burst_when_told(orders: &Receiver<u64>, done: &SyncSender<()>) {
    let mut before = Vec::new();
    while let Ok(size) = orders.recv() {
        let blocks: Vec<Vec<u8>> = (0..size * 32).map(|_| vec![1; 1000]).collect();
        let last = vec![1_u8; 1000];
        drop(black_box(blocks));
        // The block that stood above the last burst goes only now: this burst's is above all that is free.
        drop(std::mem::replace(&mut before, last));
        let _ = done.send(());
    }
}
