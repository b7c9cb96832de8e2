//! Sizes of objects in four bytes each: few are larger than that.

/// A column of sizes in bytes.
#[derive(Clone, Debug, Default)]
pub struct Sizes {
    small: Vec<u32>,
    /// Those that do not fit, by row, ascending.
    large: Vec<(u32, u64)>,
}

/// In `small`: the size stands in `large`.
const LARGE: u32 = u32::MAX;

impl Sizes {
    /// Adds a row.
    pub fn push(&mut self, bytes: u64) {
        match u32::try_from(bytes) {
            Ok(bytes) if bytes != LARGE => self.small.push(bytes),
            _ => {
                self.large.push((self.small.len() as u32, bytes));
                self.small.push(LARGE);
            }
        }
    }

    /// Makes room for so many rows and no more.
    pub fn reserve_exact(&mut self, rows: usize) {
        self.small.reserve_exact(rows);
    }

    /// Gives back what was taken beyond the rows.
    pub fn shrink_to_fit(&mut self) {
        self.small.shrink_to_fit();
        self.large.shrink_to_fit();
    }

    /// A row.
    ///
    /// # Panics
    /// When there is no such row.
    pub fn get(&self, row: usize) -> u64 {
        match self.small[row] {
            LARGE => {
                let at = self.large.binary_search_by_key(&row, |(large, _)| *large as usize);
                at.map_or(0, |at| self.large[at].1)
            }
            bytes => bytes.into(),
        }
    }

    /// Sets a row.
    ///
    /// # Panics
    /// When there is no such row.
    pub fn set(&mut self, row: usize, bytes: u64) {
        let at = self.large.binary_search_by_key(&row, |(large, _)| *large as usize);
        match (u32::try_from(bytes).ok().filter(|bytes| *bytes != LARGE), at) {
            (Some(bytes), Ok(at)) => {
                self.large.remove(at);
                self.small[row] = bytes;
            }
            (Some(bytes), Err(_)) => self.small[row] = bytes,
            (None, Ok(at)) => self.large[at].1 = bytes,
            (None, Err(at)) => {
                self.large.insert(at, (row as u32, bytes));
                self.small[row] = LARGE;
            }
        }
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.small.len()
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.small.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_of_any_number_of_bytes_are_kept() {
        let mut twin = vec![0, 40, u64::from(u32::MAX) - 1, u64::from(u32::MAX), 1 << 40, 7];
        let mut sizes = Sizes::default();
        twin.iter().for_each(|bytes| sizes.push(*bytes));
        twin.clone().iter().for_each(|bytes| sizes.push(*bytes));
        twin.extend(twin.clone());
        for (row, bytes) in [(0, 1 << 50), (4, 3), (5, u64::MAX), (10, 9), (3, 1 << 33), (0, 2)] {
            sizes.set(row, bytes);
            twin[row] = bytes;
            assert_eq!((0..sizes.len()).map(|row| sizes.get(row)).collect::<Vec<_>>(), twin);
        }
    }
}
