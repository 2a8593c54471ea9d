//! Random names and uids.

/// What generated names end in: without vowels, and without what looks like another.
const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";

/// How many characters are added to a generateName.
const SUFFIX_CHARS: usize = 5;

/// The longest name that is made of a generateName.
const MAX_NAME_CHARS: usize = 63;

/// A new uid: a random UUID.
pub(crate) fn uid() -> String {
    let mut bytes: [u8; 16] = random();
    bytes[6] = (bytes[6] & 0x0f) | 0x40;
    bytes[8] = (bytes[8] & 0x3f) | 0x80;
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}

/// A name that starts with `base`.
pub(crate) fn name(base: &str) -> String {
    let mut kept = base.len().min(MAX_NAME_CHARS - SUFFIX_CHARS);
    while !base.is_char_boundary(kept) {
        kept -= 1;
    }
    let mut name = base[..kept].to_owned();
    for byte in random::<SUFFIX_CHARS>() {
        name.push(char::from(ALPHABET[usize::from(byte) % ALPHABET.len()]));
    }
    name
}

/// A number below `limit`, which is small.
pub(crate) fn below(limit: u64) -> u64 {
    u64::from_le_bytes(random()) % limit
}

fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).expect("the operating system has random bytes");
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_start_as_asked_and_fit_a_label() {
        let made = name("job-");
        assert!(made.starts_with("job-") && made.len() == 9, "{made}");
        assert_eq!(name(&"x".repeat(80)).len(), 63);
        assert_ne!(uid(), uid());
        assert_eq!(uid().len(), 36);
    }
}
