//! Places with numbers.

use alloc::vec::Vec;

use super::MAX_CIRCUITS;

/// A number once given out stays until it is given back. In chunks, so that nothing is copied as they grow, and no more than
/// a chunk is there for nothing.
#[derive(Debug)]
pub(super) struct Slots<T> {
    chunks: Vec<Vec<Option<T>>>,
    free: Vec<u32>,
}

/// Places in a chunk.
const CHUNK: u32 = 64;

impl<T> Slots<T> {
    pub(super) fn new() -> Self {
        Self {
            chunks: Vec::new(),
            free: Vec::new(),
        }
    }

    /// Gives the number of a place, or the value back where there is none.
    pub(super) fn insert(&mut self, value: T) -> Result<u32, T> {
        if let Some(number) = self.free.pop() {
            if let Some(place) = self.place(number) {
                *place = Some(value);
            }
            return Ok(number);
        }
        let full = u32::try_from(self.chunks.len().saturating_sub(1)).unwrap_or(u32::MAX) * CHUNK;
        match self.chunks.last_mut() {
            Some(chunk) if chunk.len() < CHUNK as usize => {
                let number = full + u32::try_from(chunk.len()).unwrap_or(0);
                chunk.push(Some(value));
                Ok(number)
            }
            last => {
                let number = if last.is_some() { full + CHUNK } else { 0 };
                if number >= MAX_CIRCUITS {
                    return Err(value);
                }
                let mut chunk = Vec::with_capacity(CHUNK as usize);
                chunk.push(Some(value));
                self.chunks.push(chunk);
                Ok(number)
            }
        }
    }

    pub(super) fn remove(&mut self, number: u32) -> Option<T> {
        let value = self.place(number)?.take()?;
        self.free.push(number);
        Some(value)
    }

    pub(super) fn get(&self, number: u32) -> Option<&T> {
        let chunk = self.chunks.get((number / CHUNK) as usize)?;
        chunk.get((number % CHUNK) as usize)?.as_ref()
    }

    pub(super) fn get_mut(&mut self, number: u32) -> Option<&mut T> {
        self.place(number)?.as_mut()
    }

    fn place(&mut self, number: u32) -> Option<&mut Option<T>> {
        let chunk = self.chunks.get_mut((number / CHUNK) as usize)?;
        chunk.get_mut((number % CHUNK) as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_count_up_and_come_back_when_they_are_given_back() {
        let mut slots = Slots::new();
        for number in 0..3 * CHUNK {
            assert_eq!(slots.insert(number), Ok(number));
        }
        assert_eq!(slots.remove(CHUNK), Some(CHUNK));
        assert_eq!(slots.get(CHUNK), None);
        assert_eq!(slots.remove(CHUNK), None);
        assert_eq!(slots.insert(7), Ok(CHUNK));
        assert_eq!(slots.get(CHUNK), Some(&7));
        assert_eq!(slots.insert(8), Ok(3 * CHUNK));
        assert_eq!(slots.get(u32::MAX), None);
    }

    #[test]
    fn there_are_no_more_than_the_limit() {
        let mut slots = Slots::new();
        for _ in 0..MAX_CIRCUITS {
            slots.insert(()).unwrap();
        }
        assert_eq!(slots.insert(()), Err(()));
        slots.remove(5).unwrap();
        assert_eq!(slots.insert(()), Ok(5));
        assert_eq!(slots.insert(()), Err(()));
    }
}
