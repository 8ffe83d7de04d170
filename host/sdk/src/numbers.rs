//! Which slot a circuit's number in an instance stands for.

use std::collections::HashMap;

/// Numbers and slots. Shipped policies number their circuits from 0 on, so those that come near have a list to themselves; an
/// instance may hand out any others.
#[derive(Debug, Default)]
pub(crate) struct Numbers {
    /// By number; [`NONE`] for those that are not taken.
    near: Vec<u32>,
    far: HashMap<u32, u32>,
    taken: usize,
}

impl Numbers {
    /// How many are taken.
    pub(crate) fn len(&self) -> usize {
        self.taken
    }

    pub(crate) fn get(&self, number: u32) -> Option<usize> {
        let near = self.near.get(number as usize).filter(|slot| **slot != NONE);
        let slot = near.or_else(|| self.far.get(&number))?;
        Some(*slot as usize)
    }

    /// Takes a number that is not taken.
    pub(crate) fn insert(&mut self, number: u32, slot: usize) {
        // There are never so many slots that this would not fit: see `MAX_IN_SHARD`.
        let slot = u32::try_from(slot).unwrap_or(NONE);
        let at = number as usize;
        if at < self.near.len() + AHEAD && at >= self.near.len() {
            self.near.resize(at + 1, NONE);
        }
        match self.near.get_mut(at) {
            Some(place) => *place = slot,
            None => {
                self.far.insert(number, slot);
            }
        }
        self.taken += 1;
    }

    pub(crate) fn remove(&mut self, number: u32) {
        let near = self.near.get_mut(number as usize).filter(|slot| **slot != NONE);
        let was_taken = match near {
            Some(slot) => {
                *slot = NONE;
                true
            }
            None => self.far.remove(&number).is_some(),
        };
        self.taken -= usize::from(was_taken);
    }
}

const NONE: u32 = u32::MAX;
/// How far beyond the last one a number may be and still come near.
const AHEAD: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_number_finds_its_slot_until_it_is_removed() {
        let mut numbers = Numbers::default();
        let taken = [5, 0, 70, 1_000, u32::MAX, u32::MAX - 1];
        for (slot, number) in taken.into_iter().enumerate() {
            assert_eq!(numbers.get(number), None);
            numbers.insert(number, slot);
        }
        for (slot, number) in taken.into_iter().enumerate() {
            assert_eq!(numbers.get(number), Some(slot));
        }
        assert_eq!((numbers.len(), numbers.get(1)), (taken.len(), None));
        assert!(
            numbers.near.len() < 200,
            "one number that is far makes no long list"
        );
        for number in taken {
            numbers.remove(number);
            numbers.remove(number);
            assert_eq!(numbers.get(number), None);
        }
        assert_eq!(numbers.len(), 0);
    }

    #[test]
    fn a_number_that_was_far_is_found_when_the_list_has_come_to_it() {
        let mut numbers = Numbers::default();
        numbers.insert(100, 7);
        (0..100).for_each(|number| numbers.insert(number, number as usize));
        numbers.insert(101, 101);
        assert_eq!(
            (numbers.get(100), numbers.get(101), numbers.len()),
            (Some(7), Some(101), 102)
        );
        numbers.remove(100);
        assert_eq!((numbers.get(100), numbers.len()), (None, 101));
    }
}
