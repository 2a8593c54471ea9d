//! The name of a Pod, as a function of its Job's uid, its index and its attempt.
//!
//! A create that is sent twice for one attempt meets its own name and is refused by the
//! API server: there is never a second Pod. The shape is Kubernetes' own, `JOB-INDEX-xxxxx`
//! or `JOB-xxxxx`.
//!
//! ```text
//!   suffix = (a * attempt + b) mod 27^5, written in the API's random alphabet;
//!   a and b come from (uid, index), and 3 does not divide a.
//! ```
//!
//! 27^5 is a power of 3, so multiplying by `a` is a permutation: no two of the first
//! 14,348,907 attempts share a suffix, where random ones would collide after some 4,000.
//! It can also be undone, so the attempt can be read back from a name.

/// The alphabet of the API's generated names: no vowels, no digits that look like letters.
const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
/// How many characters are generated.
const SUFFIX_CHARS: usize = 5;
/// How many suffixes there are: 27^5.
const SUFFIXES: u64 = 14_348_907;
/// The longest base that is used whole: 63 characters less the suffix.
const MAX_BASE_BYTES: usize = 58;

/// Names the Pods of one Job.
#[derive(Clone, Debug)]
pub struct PodNames {
    job_name: String,
    uid_hash: u64,
}

impl PodNames {
    /// The names of the Pods of this Job.
    pub fn new(job_name: &str, job_uid: &str) -> Self {
        Self { job_name: job_name.to_owned(), uid_hash: hash(job_uid.as_bytes()) }
    }

    /// The name of this attempt at this index; without an index, of this Pod of the Job.
    pub fn name(&self, index: Option<u32>, attempt: u32) -> String {
        let mut name = self.base(index);
        let mut rest = self.keys(index).suffix(u64::from(attempt) % SUFFIXES);
        let mut suffix = [0_u8; SUFFIX_CHARS];
        for place in suffix.iter_mut().rev() {
            *place = ALPHABET[(rest % 27) as usize];
            rest /= 27;
        }
        name.extend(suffix.iter().map(|&byte| char::from(byte)));
        name
    }

    /// What the API server would be asked to generate a name from.
    pub fn generate_name(&self, index: Option<u32>) -> String {
        match index {
            Some(index) => self.indexed_base(index),
            None => format!("{}-", self.job_name),
        }
    }

    /// The attempt that has this name, if the name is one of ours.
    pub fn attempt(&self, index: Option<u32>, name: &str) -> Option<u32> {
        let suffix = name.strip_prefix(self.base(index).as_str())?;
        if suffix.len() != SUFFIX_CHARS {
            return None;
        }
        let mut number = 0;
        for byte in suffix.bytes() {
            let digit = ALPHABET.iter().position(|&letter| letter == byte)?;
            number = number * 27 + digit as u64;
        }
        u32::try_from(self.keys(index).attempt(number)).ok()
    }

    fn base(&self, index: Option<u32>) -> String {
        let mut base = self.generate_name(index);
        base.truncate(base.floor_char_boundary(MAX_BASE_BYTES));
        base
    }

    /// The Job's name is cut, never the index.
    fn indexed_base(&self, index: u32) -> String {
        let tail = format!("-{index}-");
        let room = MAX_BASE_BYTES - tail.len();
        let head = &self.job_name[..self.job_name.floor_char_boundary(room)];
        format!("{head}{tail}")
    }

    fn keys(&self, index: Option<u32>) -> Keys {
        // An index and no index must not share keys: 0 is an index.
        let seed = self.uid_hash ^ mix(index.map_or(0, |index| u64::from(index) + 1));
        let factor = mix(seed) % SUFFIXES;
        Keys {
            // Whatever is left of a factor that 3 divides is one that it does not.
            factor: if factor.is_multiple_of(3) { factor + 1 } else { factor },
            offset: mix(seed.wrapping_add(1)) % SUFFIXES,
        }
    }
}

/// A permutation of the suffixes.
struct Keys {
    factor: u64,
    offset: u64,
}

impl Keys {
    fn suffix(&self, attempt: u64) -> u64 {
        (self.factor * attempt + self.offset) % SUFFIXES
    }

    fn attempt(&self, suffix: u64) -> u64 {
        let shifted = (suffix + SUFFIXES - self.offset) % SUFFIXES;
        shifted * inverse(self.factor) % SUFFIXES
    }
}

/// The number that undoes a multiplication by `factor`. In the group of 3^15 every
/// number that 3 does not divide has the order 2 * 3^14 or a part of it, so its inverse
/// is its power of one less.
fn inverse(factor: u64) -> u64 {
    let mut exponent = SUFFIXES / 3 * 2 - 1;
    let (mut result, mut power) = (1, factor % SUFFIXES);
    while exponent > 0 {
        if exponent % 2 == 1 {
            result = result * power % SUFFIXES;
        }
        power = power * power % SUFFIXES;
        exponent /= 2;
    }
    result
}

/// FNV-1a: stable for ever, which a name that must be found again needs.
fn hash(bytes: &[u8]) -> u64 {
    let start = 0xcbf2_9ce4_8422_2325;
    bytes.iter().fold(start, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// Spreads every bit of a number over all of it (the finalizer of splitmix64).
fn mix(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    const UID: &str = "0b7a2c1e-8f0d-4b8e-9d6e-5f3f6a1c2b4d";

    #[test]
    fn a_name_has_kubernetes_shape_and_never_changes() {
        let names = PodNames::new("train", UID);
        assert_eq!(names.generate_name(Some(7)), "train-7-");
        assert_eq!(names.generate_name(None), "train-");
        // Stored Pods bear these names: a change here would orphan them.
        assert_eq!(names.name(Some(7), 0), "train-7-5vwzz");
        assert_eq!(names.name(Some(7), 1), "train-7-z7q8q");
        assert_eq!(names.name(None, 0), "train-kgrqb");
    }

    #[test]
    fn another_uid_or_index_has_other_names() {
        let names: BTreeSet<String> = [UID, "another-uid"]
            .iter()
            .flat_map(|uid| {
                let names = PodNames::new("j", uid);
                (0..50).map(move |index| names.name(Some(index), 0)).collect::<Vec<_>>()
            })
            .collect();
        assert_eq!(names.len(), 100);
    }

    #[test]
    fn a_long_job_name_is_cut_and_the_index_is_not() {
        let names = PodNames::new(&"a".repeat(63), UID);
        let name = names.name(Some(2_147_483_646), 3);
        assert_eq!(name.len(), 63);
        assert!(name[..58].ends_with("-2147483646-"), "{name}");
        assert_eq!(names.attempt(Some(2_147_483_646), &name), Some(3));
        assert_eq!(names.name(None, 3).len(), 63);
    }

    #[test]
    fn a_foreign_name_has_no_attempt() {
        let names = PodNames::new("j", UID);
        assert_eq!(names.attempt(Some(1), "j-2-bcdfg"), None);
        assert_eq!(names.attempt(Some(1), "j-1-bcdf"), None);
        assert_eq!(names.attempt(Some(1), "j-1-aeiou"), None);
        assert_eq!(names.attempt(None, "other-bcdfg"), None);
    }

    #[test]
    fn a_hundred_thousand_pods_without_an_index_share_no_name() {
        let names = PodNames::new("j", UID);
        let all: BTreeSet<String> = (0..100_000).map(|attempt| names.name(None, attempt)).collect();
        assert_eq!(all.len(), 100_000);
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn the_attempt_is_read_back_from_the_name(
            uid in "[a-f0-9-]{1,36}",
            index in proptest::option::of(0_u32..2_147_483_647),
            attempt in 0_u32..14_348_907,
        ) {
            let names = PodNames::new("job", &uid);
            prop_assert_eq!(names.attempt(index, &names.name(index, attempt)), Some(attempt));
        }
    }
}
