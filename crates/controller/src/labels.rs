//! The labels of a Pod in one piece of memory: thousands of Pods are held between a list and
//! what is made of it, and a map of texts costs four times as much.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use stint_api::names::label;

/// Stands between keys and values; no label has one.
const MARK: char = '\n';

/// The labels of a Pod.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Labels(Box<str>);

impl Labels {
    /// The value of a label.
    pub(crate) fn get(&self, key: &str) -> Option<&str> {
        self.iter().find(|(known, _)| *known == key).map(|(_, value)| value)
    }

    /// The uid of the Job that a Pod was made for.
    pub(crate) fn job_uid(&self) -> Option<&str> {
        self.get(label::CONTROLLER_UID).or_else(|| self.get(label::LEGACY_CONTROLLER_UID))
    }

    /// The name of that Job.
    pub(crate) fn job_name(&self) -> Option<&str> {
        let name = self.get(label::JOB_NAME).or_else(|| self.get(label::LEGACY_JOB_NAME));
        name.filter(|name| !name.is_empty())
    }

    /// The same as a map.
    pub(crate) fn to_map(&self) -> BTreeMap<String, String> {
        self.iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
    }

    fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        let mut parts = self.0.split_terminator(MARK);
        std::iter::from_fn(move || Some((parts.next()?, parts.next()?)))
    }
}

impl<'de> Deserialize<'de> for Labels {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_option(OfLabels)
    }
}

struct OfLabels;

impl<'de> Visitor<'de> for OfLabels {
    type Value = Labels;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("labels")
    }

    fn visit_none<E>(self) -> Result<Labels, E> {
        Ok(Labels::default())
    }

    fn visit_unit<E>(self) -> Result<Labels, E> {
        Ok(Labels::default())
    }

    fn visit_some<D: Deserializer<'de>>(self, from: D) -> Result<Labels, D::Error> {
        from.deserialize_map(self)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Labels, A::Error> {
        let mut text = String::new();
        while let Some((key, value)) = map.next_entry::<String, String>()? {
            for part in [key, value] {
                text.push_str(&part);
                text.push(MARK);
            }
        }
        Ok(Labels(text.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_read_back_as_they_were() {
        let labels: Labels =
            serde_json::from_str(r#"{"a":"b","empty":"","job-name":"j","controller-uid":"u"}"#)
                .expect("labels");
        assert_eq!(labels.get("a"), Some("b"));
        assert_eq!((labels.get("empty"), labels.get("b")), (Some(""), None));
        assert_eq!((labels.job_name(), labels.job_uid()), (Some("j"), Some("u")));
        assert_eq!(labels.to_map().len(), 4);
        let none: Labels = serde_json::from_str("null").expect("no labels");
        assert_eq!(none, Labels::default());
    }
}
