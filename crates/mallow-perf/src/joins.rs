//! Which sample a script's frames belong to.
//!
//! The kernel makes a sample, and then a signal, whose handler runs before the thread's next instruction. So what a handler left belongs to all samples of
//! its thread since the one before: several come of one long stay in the kernel. The two come by different ways, either of them first. They are held
//! against each other by the registers: a thread that was somewhere else by then, as it had blocked the signal, has left nothing for its sample.

use rustc_hash::FxHashMap;
use std::collections::VecDeque;

/// The data of a signal handler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ScriptNote {
    pub(crate) time_ns: u64,
    pub(crate) ip: u64,
    pub(crate) sp: u64,
    pub(crate) region: u32,
    /// The keys of the script's frames, innermost first; `None` if the signal came late, or they could not be read.
    pub(crate) frames: Option<Vec<u64>>,
}

/// Samples and handlers' data that are not matched yet. `S` is a sample.
pub(crate) struct Joins<S> {
    threads: FxHashMap<u32, Thread<S>>,
    /// Samples whose script's frames are not known.
    pub(crate) missing: u64,
}

struct Thread<S> {
    samples: VecDeque<(Moment, S)>,
    notes: VecDeque<ScriptNote>,
}

/// When a sample was made, and where the thread was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Moment {
    pub(crate) time_ns: u64,
    pub(crate) ip: u64,
    pub(crate) sp: u64,
}

/// A sample with what its thread's handler left, if that is known.
pub(crate) type Met<S> = (S, Option<ScriptNote>);

impl<S> Default for Joins<S> {
    fn default() -> Joins<S> {
        Joins { threads: FxHashMap::default(), missing: 0 }
    }
}

impl<S> Joins<S> {
    fn thread(&mut self, tid: u32) -> &mut Thread<S> {
        self.threads.entry(tid).or_insert_with(|| Thread { samples: VecDeque::new(), notes: VecDeque::new() })
    }

    /// Adds a sample. Those of a thread come in the order of time.
    pub(crate) fn sample(&mut self, tid: u32, moment: Moment, sample: S) -> Option<Met<S>> {
        let thread = self.thread(tid);
        while thread.notes.front().is_some_and(|note| note.time_ns < moment.time_ns) {
            thread.notes.pop_front();
        }
        let Some(note) = thread.notes.front() else {
            thread.samples.push_back((moment, sample));
            return None;
        };
        let note = of_moment(note, moment);
        self.missing += u64::from(note.is_none());
        Some((sample, note))
    }

    /// Adds a handler's data. Those of a thread come in the order of time.
    pub(crate) fn note(&mut self, tid: u32, note: ScriptNote, mut met: impl FnMut(Met<S>)) {
        let thread = self.thread(tid);
        let mut missing = 0;
        while let Some((moment, sample)) = thread.samples.pop_front() {
            if moment.time_ns > note.time_ns {
                thread.samples.push_front((moment, sample));
                break;
            }
            let of_sample = of_moment(&note, moment);
            missing += u64::from(of_sample.is_none());
            met((sample, of_sample));
        }
        thread.notes.push_back(note);
        self.missing += missing;
    }

    /// A thread ends at a moment, or another program begins in it; its samples that wait stay as they are. What was left since then is another's.
    pub(crate) fn ended(&mut self, tid: u32, time_ns: u64, mut met: impl FnMut(Met<S>)) {
        let Some(thread) = self.threads.get_mut(&tid) else { return };
        let of_it = thread.samples.iter().take_while(|(moment, _)| moment.time_ns <= time_ns).count();
        self.missing += of_it as u64;
        thread.samples.drain(..of_it).for_each(|(_, sample)| met((sample, None)));
        thread.notes.retain(|note| note.time_ns > time_ns);
        if thread.samples.is_empty() && thread.notes.is_empty() {
            self.threads.remove(&tid);
        }
    }

    /// Nothing comes any more.
    pub(crate) fn end(&mut self, mut met: impl FnMut(Met<S>)) {
        let threads: Vec<u32> = self.threads.keys().copied().collect();
        threads.into_iter().for_each(|tid| self.ended(tid, u64::MAX, &mut met));
    }
}

fn of_moment(note: &ScriptNote, moment: Moment) -> Option<ScriptNote> {
    /// A restarted system call has the address of its instruction while the handler runs.
    const SYSCALL_BYTES: u64 = 2;
    let is_there = note.ip == moment.ip || note.ip.wrapping_add(SYSCALL_BYTES) == moment.ip;
    (is_there && note.sp == moment.sp && note.frames.is_some()).then(|| note.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(time_ns: u64, ip: u64) -> ScriptNote {
        ScriptNote { time_ns, ip, sp: 9, region: 0, frames: Some(vec![time_ns]) }
    }

    fn at(time_ns: u64, ip: u64) -> Moment {
        Moment { time_ns, ip, sp: 9 }
    }

    /// The name of each sample, and the time of its note.
    fn times_of(met: impl IntoIterator<Item = Met<char>>) -> Vec<(char, Option<u64>)> {
        met.into_iter().map(|(sample, note)| (sample, note.map(|note| note.time_ns))).collect()
    }

    #[test]
    fn a_sample_meets_the_next_note_of_its_thread_whichever_comes_first() {
        let (mut joins, mut met) = (Joins::default(), Vec::new());
        assert_eq!(joins.sample(1, at(10, 5), 'a'), None);
        assert_eq!(joins.sample(1, at(20, 5), 'b'), None);
        joins.note(2, note(25, 5), |it| met.push(it));
        assert!(met.is_empty(), "another thread");
        joins.note(1, note(30, 5), |it| met.push(it));
        assert_eq!(times_of(std::mem::take(&mut met)), [('a', Some(30)), ('b', Some(30))]);
        // A note that was there before its sample.
        joins.note(1, note(50, 7), |it| met.push(it));
        assert_eq!(times_of(joins.sample(1, at(40, 7), 'c')), [('c', Some(50))]);
        assert_eq!(joins.sample(1, at(60, 7), 'd'), None, "it came behind that");
        joins.end(|it| met.push(it));
        assert_eq!((times_of(met), joins.missing), (vec![('d', None)], 1));
    }

    /// The record of the program's beginning comes behind what its handler left.
    #[test]
    fn what_another_program_left_is_kept_from_its_beginning_on() {
        let (mut joins, mut met) = (Joins::default(), Vec::new());
        assert_eq!(joins.sample(1, at(10, 5), 'a'), None);
        joins.note(1, note(40, 7), |it| met.push(it));
        joins.note(2, note(5, 7), |_| {});
        met.clear();
        joins.ended(1, 20, |it| met.push(it));
        joins.ended(2, 20, |it| met.push(it));
        assert_eq!(times_of(joins.sample(1, at(30, 7), 'b')), [('b', Some(40))]);
        assert_eq!(joins.threads.len(), 1);
    }

    #[test]
    fn a_thread_that_has_moved_has_left_nothing() {
        let mut joins = Joins::default();
        joins.note(1, note(50, 7), |_| {});
        assert_eq!(times_of(joins.sample(1, at(40, 8), 'a')), [('a', None)]);
        assert_eq!(times_of(joins.sample(1, at(41, 9), 'b')), [('b', Some(50))], "the call begins anew");
        assert_eq!(times_of(joins.sample(1, Moment { sp: 1, ..at(42, 7) }, 'c')), [('c', None)]);
        joins.note(1, ScriptNote { frames: None, ..note(70, 7) }, |_| {});
        assert_eq!(times_of(joins.sample(1, at(60, 7), 'd')), [('d', None)]);
        assert_eq!(joins.missing, 3);
    }
}
