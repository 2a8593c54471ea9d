//! The command that runs the same again, as it can be pasted into a shell. Text made from values.

use std::ffi::OsString;

use crate::shell_word::quoted;

/// What is left out: which of the indexes were run is said anew.
const INDEXES: &str = "--only-indexes";
const FAILED: &str = "--retry-failed";

/// What followed `stint run`, but for which of the indexes.
pub(crate) fn arguments(given: impl Iterator<Item = OsString>) -> String {
    let mut words = Vec::new();
    let mut is_value_of_indexes = false;
    let mut is_plain = false;
    for given in given {
        let word = given.to_string_lossy();
        if std::mem::take(&mut is_value_of_indexes) {
            continue;
        }
        is_plain |= word == "--";
        let is_left_out = word == FAILED || word.starts_with(&format!("{INDEXES}="));
        if !is_plain && word == INDEXES {
            is_value_of_indexes = true;
        } else if is_plain || !is_left_out {
            words.push(quoted(&given));
        }
    }
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_can_be_pasted() {
        let rows: [(&[&str], &str); 6] = [
            (&["a.yaml"], "a.yaml"),
            (&["-R", "my jobs", "--set", "A=it's"], r"-R 'my jobs' --set 'A=it'\''s'"),
            (&["--only-indexes", "3,7-9", "a.yaml"], "a.yaml"),
            (&["--only-indexes=3", "--retry-failed", "a.yaml"], "a.yaml"),
            (&["--set", "", "a.yaml"], "--set '' a.yaml"),
            (&["--", "--retry-failed"], "-- --retry-failed"),
        ];
        for (given, expected) in rows {
            let words = given.iter().map(OsString::from);
            assert_eq!(arguments(words), expected, "{given:?}");
        }
    }

    #[test]
    fn a_long_command_is_whole() {
        let files: Vec<String> = (0..500).map(|number| format!("jobs/{number}.yaml")).collect();
        let words = files.iter().map(OsString::from);
        assert_eq!(arguments(words), files.join(" "));
    }
}
