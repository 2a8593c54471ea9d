//! "Did you mean": the known word that a misspelt one was meant to be.

/// Words longer than this are not compared letter by letter. The longest field
/// name of the Kubernetes API, `preferredDuringSchedulingIgnoredDuringExecution`,
/// has 47 letters; 64 leaves room for what a misspelling adds.
const MAX_COMPARED_CHARS: usize = 64;

/// The candidate that `word` most likely stands for, if any is close enough.
///
/// The same letters in another case or with `_` and `-` between them come first
/// (`backoff_limit`), then the fewest letters dropped, added, changed or
/// swapped; among equals the first candidate.
///
/// ```
/// use stint_api::decode::suggest::closest;
/// let fields = ["parallelism", "completions", "backoffLimit"];
/// assert_eq!(closest("paralelism", fields.into_iter()), Some("parallelism"));
/// assert_eq!(closest("backoff_limit", fields.into_iter()), Some("backoffLimit"));
/// assert_eq!(closest("replicas", fields.into_iter()), None);
/// ```
pub fn closest<'a>(word: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let letters = folded(word);
    if letters.is_empty() || letters.len() > MAX_COMPARED_CHARS {
        return None;
    }
    let mut best: Option<(usize, &str)> = None;
    for candidate in candidates {
        let candidate_letters = folded(candidate);
        let allowed = allowed_edits(letters.len().max(candidate_letters.len()));
        if letters.len().abs_diff(candidate_letters.len()) > allowed {
            continue;
        }
        let edits = edit_distance(&letters, &candidate_letters);
        if edits <= allowed && best.is_none_or(|(fewest, _)| edits < fewest) {
            best = Some((edits, candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
}

/// The letters without case and without the separators of other spellings.
fn folded(word: &str) -> Vec<char> {
    word.chars().filter(|c| !matches!(c, '_' | '-' | ' ')).flat_map(char::to_lowercase).collect()
}

/// How many edits still leave a word recognisable.
fn allowed_edits(length: usize) -> usize {
    match length {
        0..=3 => 1,
        4..=8 => 2,
        _ => 3,
    }
}

/// The number of letters to drop, add, change or swap with their neighbour to
/// get from one word to the other (optimal string alignment).
fn edit_distance(from: &[char], to: &[char]) -> usize {
    let mut before: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=to.len()).collect();
    for (i, a) in from.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, b) in to.iter().enumerate() {
            let changed = above[j] + usize::from(a != b);
            let mut fewest = changed.min(above[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && *a == to[j - 1] && from[i - 1] == *b {
                fewest = fewest.min(before[j - 1] + 1);
            }
            row.push(fewest);
        }
        before = std::mem::replace(&mut above, row);
    }
    above[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIELDS: [&str; 8] = [
        "activeDeadlineSeconds",
        "backoffLimit",
        "completions",
        "image",
        "imagePullPolicy",
        "name",
        "env",
        "envFrom",
    ];

    #[test]
    fn a_misspelt_field_is_recognised() {
        let rows = [
            ("backofflimit", Some("backoffLimit")),
            ("backoff-limit", Some("backoffLimit")),
            ("active_deadline_seconds", Some("activeDeadlineSeconds")),
            ("activeDeadlineSecond", Some("activeDeadlineSeconds")),
            ("completoins", Some("completions")),
            ("imgae", Some("image")),
            ("nmae", Some("name")),
            ("envfrom", Some("envFrom")),
            ("evn", Some("env")),
            ("x", None),
            ("", None),
            ("replicas", None),
        ];
        for (word, expected) in rows {
            assert_eq!(closest(word, FIELDS.into_iter()), expected, "{word}");
        }
    }

    #[test]
    fn swapping_two_letters_is_one_edit() {
        let chars = |word: &str| word.chars().collect::<Vec<_>>();
        assert_eq!(edit_distance(&chars("abcd"), &chars("abdc")), 1);
        assert_eq!(edit_distance(&chars("abcd"), &chars("abcd")), 0);
        assert_eq!(edit_distance(&chars(""), &chars("abc")), 3);
    }

    #[test]
    fn a_huge_word_costs_nothing() {
        assert_eq!(closest(&"a".repeat(100_000), FIELDS.into_iter()), None);
    }
}
