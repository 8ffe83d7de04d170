//! Keys that are compared fast.

use alloc::sync::Arc;
use core::cmp::Ordering;

/// A key in the order of its bytes. They are compared eight at a time: in a component, comparing texts goes byte by byte, and
/// keys often begin alike.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Key(pub(super) Arc<str>);

impl Ord for Key {
    fn cmp(&self, other: &Self) -> Ordering {
        let (mut one, mut two) = (self.0.as_bytes(), other.0.as_bytes());
        while let (Some((first, rest)), Some((second, other_rest))) =
            (one.split_first_chunk::<8>(), two.split_first_chunk::<8>())
        {
            if first != second {
                return u64::from_be_bytes(*first).cmp(&u64::from_be_bytes(*second));
            }
            (one, two) = (rest, other_rest);
        }
        one.cmp(two)
    }
}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_ordered_as_texts_are() {
        let texts = [
            "",
            "a",
            "aaaaaaa",
            "aaaaaaaa",
            "aaaaaaab",
            "aaaaaaaaa",
            "aaaaaaabaaaaaaaa",
            "aaaaaaaabaaaaaaa",
            "\u{7f}",
            "\u{80}bbbbbbb",
            "\u{ffff}bbbbbbbbbbbb",
            "b",
            "host:8080",
            "host:8081",
            "webhook:example.com",
            "webhook:example.org",
        ];
        for one in texts {
            for two in texts {
                assert_eq!(
                    Key(one.into()).cmp(&Key(two.into())),
                    one.cmp(two),
                    "{one:?} and {two:?}"
                );
            }
        }
    }
}
