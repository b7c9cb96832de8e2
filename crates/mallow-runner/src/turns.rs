//! Whose turn it is: random blocks, so that a drift of the machine falls on all commands alike.
//!
//! A block is two rounds: all commands in a random order, then all of them the other way round (for two commands ABBA or BAAB).

/// The order of commands in rounds.
#[derive(Debug)]
pub(crate) struct Turns {
    commands: usize,
    state: u64,
    last: Option<Vec<usize>>,
}

impl Turns {
    pub(crate) fn new(commands: usize, seed: u64) -> Turns {
        Turns { commands, state: seed | 1, last: None }
    }

    /// The next round.
    pub(crate) fn round(&mut self) -> Vec<usize> {
        if let Some(mut first) = self.last.take() {
            first.reverse();
            return first;
        }
        let mut order: Vec<usize> = (0..self.commands).collect();
        for at in (1..order.len()).rev() {
            order.swap(at, self.below(at + 1));
        }
        self.last = Some(order.clone());
        order
    }

    fn below(&mut self, bound: usize) -> usize {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        (self.state >> 11) as usize % bound
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_a_round_and_its_mirror() {
        let mut turns = Turns::new(4, 99);
        for _ in 0..50 {
            let (first, mut second) = (turns.round(), turns.round());
            second.reverse();
            assert_eq!(first, second);
            let mut sorted = first;
            sorted.sort_unstable();
            assert_eq!(sorted, [0, 1, 2, 3]);
        }
    }

    #[test]
    fn each_command_is_first_about_as_often() {
        let mut turns = Turns::new(2, 12_345);
        let firsts = (0..2000).map(|_| (turns.round()[0], turns.round())).filter(|(first, _)| *first == 0);
        let count = firsts.count();
        assert!((850..1150).contains(&count), "{count}");
    }
}
