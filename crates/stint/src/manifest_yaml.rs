//! A Job as the YAML its author could have written.
//!
//! Kubernetes' own reader is a YAML 1.1 reader with bugs of its own; what is
//! written here must mean the same to it as to everyone else.

use k8s_openapi::api::batch::v1::Job;
use serde::{Serialize, Serializer};
use serde_json::Value;

/// `job` as a YAML document, without what only an API server may set: its status,
/// uid, generation and time of creation.
///
/// The serializer quotes strings that YAML 1.1 takes for something else, such as
/// `yes`, `010` and `1e3`. Strings of several lines become block literals where
/// that is safe. Long strings are not folded: a fold means the same, but a command
/// that was one line should look like one.
pub(crate) fn to_yaml(job: &Job) -> String {
    let mut job = job.clone();
    job.status = None;
    job.metadata.uid = None;
    job.metadata.generation = None;
    job.metadata.creation_timestamp = None;
    value_to_yaml(&serde_json::to_value(&job).expect("Kubernetes types serialise to JSON"))
}

/// An object as a YAML document, with everything that it has.
pub(crate) fn value_to_yaml(value: &Value) -> String {
    let options = serde_saphyr::ser_options! {
        folded_wrap_chars: usize::MAX,
        yaml_12: false,
    };
    serde_saphyr::to_string_with_options(&Node(value), options)
        .expect("every JSON value has a YAML form")
}

/// A value that tells the serializer which strings to quote whatever it thinks.
struct Node<'a>(&'a Value);

impl Serialize for Node<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::String(text) if text.contains('\n') && !is_safe_literal(text) => {
                serde_saphyr::DoubleQuoted(text).serialize(serializer)
            }
            Value::Array(items) => serializer.collect_seq(items.iter().map(Node)),
            Value::Object(members) => {
                serializer.collect_map(members.iter().map(|(key, value)| (key, Node(value))))
            }
            scalar => scalar.serialize(serializer),
        }
    }
}

/// Whether every reader takes a block literal of `text` for that text. Blank and
/// indented first lines need an indentation indicator, and Go's reader refuses a
/// tab at the start of a line while it still looks for the indentation.
fn is_safe_literal(text: &str) -> bool {
    !text.starts_with(['\n', ' ', '\t'])
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn with_annotation(value: &str) -> Job {
        let mut job = Job::default();
        job.metadata.annotations = Some(BTreeMap::from([("a".to_owned(), value.to_owned())]));
        job
    }

    #[test]
    fn a_string_stays_a_string_for_every_reader() {
        // Each form was read back with PyYAML and with kubectl.
        let rows = [
            ("plain", "plain"),
            ("yes", "\"yes\""),
            ("n", "\"n\""),
            ("010", "\"010\""),
            ("1e3", "\"1e3\""),
            ("0x1F", "\"0x1F\""),
            ("12:30:45", "\"12:30:45\""),
            ("2001-01-01", "\"2001-01-01\""),
            ("~", "\"~\""),
            ("", "\"\""),
            ("\u{1b}", "\"\\e\""),
            ("one\n\ttwo\n", "|\n      one\n      \ttwo"),
            ("one\ntwo", "|-\n      one\n      two"),
            ("\n\tone", "\"\\n\\tone\""),
            ("  one\ntwo", "\"  one\\ntwo\""),
        ];
        for (value, expected) in rows {
            let yaml = to_yaml(&with_annotation(value));
            assert!(yaml.contains(&format!("    a: {expected}\n")), "{yaml}");
        }
    }

    #[test]
    fn a_long_command_stays_one_line() {
        let command = "word ".repeat(100) + "end";
        let yaml = to_yaml(&with_annotation(&command));
        assert!(yaml.contains(&format!("a: {command}\n")), "{yaml}");
    }

    #[test]
    fn what_only_a_server_may_set_is_left_out() {
        let mut job = with_annotation("x");
        job.metadata.uid = Some("u".to_owned());
        job.metadata.generation = Some(1);
        job.status = Some(Default::default());
        assert_eq!(to_yaml(&job), to_yaml(&with_annotation("x")));
        assert!(to_yaml(&job).starts_with("apiVersion: batch/v1\nkind: Job\nmetadata:\n"));
    }
}
