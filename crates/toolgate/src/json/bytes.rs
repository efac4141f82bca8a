//! Eight bytes of a text at a look: what most texts are made of is told from the rest without a branch for each byte.

/// How many bytes stand for themselves in a string, up to a quotation mark, a backslash or a control character.
pub(super) fn plain_length(bytes: &[u8]) -> usize {
    let (words, rest) = bytes.as_chunks::<8>();
    let mut length = 0;
    for word in words {
        let word = u64::from_le_bytes(*word);
        let special = (below(0x20, word) | equal(b'"', word) | equal(b'\\', word)) & HIGH;
        if special != 0 {
            // Of the marked bytes the lowest is marked rightly, and it is the first of the text.
            return length + usize::try_from(special.trailing_zeros() / 8).unwrap_or_default();
        }
        length += 8;
    }
    let is_special = |byte: &u8| *byte < 0x20 || *byte == b'"' || *byte == b'\\';
    length + rest.iter().position(is_special).unwrap_or(rest.len())
}

/// Whether a text holds nothing but letters, digits, marks and spaces of ASCII.
pub(crate) fn is_printable_ascii(text: &str) -> bool {
    let bytes = text.as_bytes();
    let other = |word: u64| (word | below(0x20, word) | equal(0x7F, word)) & HIGH;
    let Some(last) = bytes.last_chunk::<8>() else { return bytes.iter().all(|byte| matches!(byte, b' '..=b'~')) };
    let (words, _) = bytes.as_chunks::<8>();
    // The last eight again: some of them may stand in no whole word.
    words.iter().chain([last]).fold(0, |any, word| any | other(u64::from_le_bytes(*word))) == 0
}

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGH: u64 = ONES << 7;

/// The high bit of each byte of `word` that is below `limit`, and perhaps of bytes above such a one: its difference
/// borrows from them. Other bits mean nothing.
fn below(limit: u8, word: u64) -> u64 {
    word.wrapping_sub(ONES.wrapping_mul(u64::from(limit))) & !word
}

/// The same for the bytes that are `byte`.
fn equal(byte: u8, word: u64) -> u64 {
    below(1, word ^ ONES.wrapping_mul(u64::from(byte)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const EDGES: &str = " !\"#[\\]~\u{1}\u{1f}\u{0}\u{7f}\u{80}é\u{7ff}🥝a";

    proptest! {
        #[test]
        fn a_string_is_plain_up_to_its_first_special_byte(
            bytes in prop::collection::vec(prop_oneof![any::<u8>(), prop::sample::select(EDGES.as_bytes())], 0..40),
        ) {
            let first = bytes.iter().position(|byte| matches!(byte, 0..=0x1f | b'"' | b'\\'));
            prop_assert_eq!(plain_length(&bytes), first.unwrap_or(bytes.len()));
        }

        #[test]
        fn a_text_is_printable_if_each_of_its_characters_is(
            plain in "[ -~]{0,30}",
            odd in prop::option::of(prop::sample::select(EDGES.chars().collect::<Vec<_>>())),
            at in any::<prop::sample::Index>(),
        ) {
            let mut text = plain;
            if let Some(odd) = odd {
                text.insert(at.index(text.len() + 1), odd);
            }
            prop_assert_eq!(is_printable_ascii(&text), text.bytes().all(|byte| (0x20..0x7F).contains(&byte)), "{:?}", text);
        }
    }
}
