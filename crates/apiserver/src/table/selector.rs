//! Labels and label selectors in one line, as `-l` takes them: `a=1,b in (x,y),!c`.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};
use stint_api::identifier::{label_value, qualified_name};

use super::NONE;

/// Labels, sorted; `<none>` if there are none.
pub fn of_labels(labels: Option<&BTreeMap<String, String>>) -> String {
    // Sorted as whole texts and not by their keys: `a-b=1` comes before `a=1`.
    let mut pairs: Vec<String> =
        labels.into_iter().flatten().map(|(key, value)| format!("{key}={value}")).collect();
    pairs.sort_unstable();
    join(pairs)
}

/// A selector's requirements, sorted by their keys; `<none>` if it has none, and `<error>` if
/// it is not valid.
pub fn of_selector(selector: Option<&LabelSelector>) -> String {
    requirements(selector).map_or_else(|| "<error>".to_owned(), join)
}

fn requirements(selector: Option<&LabelSelector>) -> Option<Vec<String>> {
    let Some(selector) = selector else {
        return Some(Vec::new());
    };
    let mut by_key: Vec<(&str, String)> = Vec::new();
    for (key, value) in selector.match_labels.iter().flatten() {
        if !is_valid(key, std::slice::from_ref(value)) {
            return None;
        }
        by_key.push((key, format!("{key}={value}")));
    }
    for expression in selector.match_expressions.iter().flatten() {
        by_key.push((&expression.key, requirement(expression)?));
    }
    by_key.sort_by_key(|(key, _)| *key);
    Some(by_key.into_iter().map(|(_, text)| text).collect())
}

fn requirement(expression: &LabelSelectorRequirement) -> Option<String> {
    let key = &expression.key;
    let mut values = expression.values.clone().unwrap_or_default();
    values.sort_unstable();
    let text = match (expression.operator.as_str(), values.is_empty()) {
        ("In", false) => format!("{key} in ({})", values.join(",")),
        ("NotIn", false) => format!("{key} notin ({})", values.join(",")),
        ("Exists", true) => key.clone(),
        ("DoesNotExist", true) => format!("!{key}"),
        _ => return None,
    };
    is_valid(key, &values).then_some(text)
}

fn is_valid(key: &str, values: &[String]) -> bool {
    qualified_name(key).is_empty() && values.iter().all(|value| label_value(value).is_empty())
}

fn join(items: Vec<String>) -> String {
    if items.is_empty() { NONE.to_owned() } else { items.join(",") }
}
