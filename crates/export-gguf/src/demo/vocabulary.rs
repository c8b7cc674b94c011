//! A made-up vocabulary of the `SentencePiece` kind: specials, bytes, letters, syllables.

/// Token types as `tokenizer.ggml.token_type` numbers them.
const NORMAL: i32 = 1;
const UNKNOWN: i32 = 2;
const CONTROL: i32 = 3;
const BYTE: i32 = 6;

/// Parallel lists of tokens, their scores and their types.
#[derive(Debug, Default)]
pub(super) struct Vocabulary {
    pub(super) tokens: Vec<String>,
    pub(super) scores: Vec<f32>,
    pub(super) types: Vec<i32>,
}

impl Vocabulary {
    /// Exactly `size` different tokens, 320 at least.
    pub(super) fn new(size: usize) -> Self {
        let mut all = Self::default();
        for (token, ty) in [("<unk>", UNKNOWN), ("<s>", CONTROL), ("</s>", CONTROL)] {
            all.push(token.to_owned(), 0.0, ty);
        }
        for byte in 0..=255_u8 {
            all.push(format!("<0x{byte:02X}>"), 0.0, BYTE);
        }
        let letters = ('a'..='z').chain(['\u{2581}', ',', '.', '!', '?']).map(String::from);
        // Frequent tokens come first and have the higher scores.
        for (rank, token) in letters.chain(words()).take(size - all.tokens.len()).enumerate() {
            all.push(token, -(rank as f32), NORMAL);
        }
        all
    }

    fn push(&mut self, token: String, score: f32, ty: i32) {
        self.tokens.push(token);
        self.scores.push(score);
        self.types.push(ty);
    }
}

/// Syllables, then words of two and three syllables, each with and without a space before it.
fn words() -> impl Iterator<Item = String> {
    let syllable = |i: usize| {
        let consonant = char::from(b"bcdfghjklmnpqrstvwxz"[i / 5 % 20]);
        let vowel = char::from(b"aeiou"[i % 5]);
        format!("{consonant}{vowel}")
    };
    let word = move |length: u32, mut i: usize| {
        let mut word = String::new();
        for _ in 0..length {
            word.push_str(&syllable(i % 100));
            i /= 100;
        }
        word
    };
    (1..=3_u32)
        .flat_map(move |length| (0..100_usize.pow(length)).map(move |i| word(length, i)))
        .flat_map(|word| [format!("\u{2581}{word}"), word])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_as_many_as_asked_and_all_different() {
        for size in [320, 4096, 32_000] {
            let v = Vocabulary::new(size);
            let different: std::collections::BTreeSet<_> = v.tokens.iter().collect();
            assert_eq!((different.len(), v.scores.len(), v.types.len()), (size, size, size));
        }
    }
}
