//! What an API server has counted, read from its metrics.

use std::collections::BTreeMap;

use http::Request;
use kube::Client;

use crate::error::BenchError;

/// What a server has counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Calls by verb and resource, such as `create pods`. Watches are counted when they end.
    pub(crate) by_call: BTreeMap<String, u64>,
    /// The revisions of the store: one for each write.
    pub(crate) writes: u64,
}

impl Counts {
    /// What a server has counted so far.
    pub(crate) async fn of(client: &Client) -> Result<Self, BenchError> {
        let request = Request::get("/metrics").body(Vec::new()).expect("a request");
        let text = client.request_text(request).await;
        let text = text.map_err(|source| BenchError::Api { what: "the metrics", source })?;
        Ok(Counts::read(&text))
    }

    fn read(text: &str) -> Self {
        let mut counts = Counts::default();
        for line in text.lines() {
            if let Some(value) = line.strip_prefix("stint_store_revision ") {
                counts.writes = value.trim().parse().unwrap_or(0);
            }
            let Some(rest) = line.strip_prefix("apiserver_request_total{") else { continue };
            let Some((labels, value)) = rest.rsplit_once("} ") else { continue };
            let (Some(verb), Some(resource)) = (label(labels, "verb"), label(labels, "resource"))
            else {
                continue;
            };
            let below = label(labels, "subresource").filter(|it| !it.is_empty());
            let below = below.map_or_else(String::new, |it| format!("/{it}"));
            let call = format!("{} {resource}{below}", verb.to_lowercase());
            *counts.by_call.entry(call).or_default() += value.trim().parse().unwrap_or(0);
        }
        counts
    }

    /// What was counted since.
    pub(crate) fn since(mut self, earlier: &Counts) -> Self {
        for (call, count) in &mut self.by_call {
            *count -= earlier.by_call.get(call).copied().unwrap_or(0).min(*count);
        }
        self.by_call.retain(|_, count| *count > 0);
        self.writes -= earlier.writes.min(self.writes);
        self
    }

    /// Those that a Job controller makes on Pods, Jobs and Events. The statuses of Pods are somebody
    /// else's, and so are the Jobs themselves.
    pub(crate) fn of_controllers(&self) -> u64 {
        let is_theirs = |call: &str| match call.split_once(' ') {
            Some(("watch" | "deletecollection", _)) => false,
            Some((verb, "jobs")) => matches!(verb, "get" | "list"),
            Some((_, resource)) => matches!(resource, "pods" | "jobs/status" | "events"),
            None => false,
        };
        let theirs = self.by_call.iter().filter(|(call, _)| is_theirs(call));
        theirs.map(|(_, count)| count).sum()
    }

    /// All calls.
    pub(crate) fn calls(&self) -> u64 {
        self.by_call.values().sum()
    }
}

/// The value of a label.
fn label<'a>(labels: &'a str, name: &str) -> Option<&'a str> {
    labels.split(',').find_map(|it| it.strip_prefix(name)?.strip_prefix("=\"")?.strip_suffix('"'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_read_by_verb_and_resource() {
        let text = "# HELP apiserver_request Requests\n\
            apiserver_request_total{verb=\"create\",group=\"\",resource=\"pods\",code=\"201\"} 7\n\
            apiserver_request_total{verb=\"create\",group=\"\",resource=\"pods\",code=\"409\"} 1\n\
            apiserver_request_total{verb=\"get\",group=\"\",resource=\"nodes\",code=\"200\"} 2\n\
            stint_store_revision 31\n";
        let counts = Counts::read(text);
        assert_eq!((counts.by_call["create pods"], counts.writes, counts.calls()), (8, 31, 10));
        let more = "apiserver_request_total{verb=\"PATCH\",resource=\"pods\",subresource=\"status\"} 5\n\
            apiserver_request_total{verb=\"PUT\",resource=\"jobs\",subresource=\"status\"} 3\n";
        let of_both = Counts::read(&format!("{text}{more}"));
        assert_eq!(of_both.by_call["patch pods/status"], 5);
        assert_eq!(of_both.of_controllers(), 8 + 3);
        let earlier = Counts::read(&text.replace("} 7", "} 3").replace(" 31", " 30"));
        let since = counts.since(&earlier);
        assert_eq!((since.calls(), since.writes, since.by_call.len()), (4, 1, 1));
    }
}
