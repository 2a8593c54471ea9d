//! Whether somebody else runs the same Jobs: the built-in controller, which stint was told to
//! replace, and which nobody has turned off.
//!
//! Nothing in the API says which controllers a kube-controller-manager runs. But whoever writes
//! a Job's status leaves its name and the time in the Job's managedFields, and of everything in
//! kube-controller-manager only its Job controller writes that. If it comes up, or its time moves
//! on, while we watch, it is at work now. The times are the API server's, so no clock of ours
//! matters; and what it wrote before we came is no reason for alarm.

use std::collections::HashMap;

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::Job;

use crate::feed::{Change, News};
use crate::job::SeenJob;

/// Who the built-in controller is in managedFields.
pub(crate) const BUILT_IN: &str = "kube-controller-manager";

/// When the built-in controller last wrote the status of each Job, by the part of the cluster that is
/// listed on its own.
#[derive(Debug, Default)]
pub(crate) struct Rival {
    scopes: HashMap<usize, Scope>,
}

#[derive(Debug, Default)]
struct Scope {
    wrote: HashMap<Box<str>, Timestamp>,
    /// What a list has told of so far that is not whole yet. What is not in it in the end is gone.
    listed: Option<HashMap<Box<str>, Timestamp>>,
}

impl Rival {
    /// Takes in what the feed of Jobs tells; a Job that the built-in controller has written
    /// while we watched.
    pub(crate) fn note(&mut self, scope: usize, news: &News<SeenJob>) -> Option<(String, String)> {
        let scope = self.scopes.entry(scope).or_default();
        let (changes, is_list) = match news {
            News::Items(changes) => (changes, true),
            News::Changes(changes) => (changes, false),
            News::Began => {
                scope.listed = Some(HashMap::new());
                return None;
            }
            News::Listed(_) => {
                scope.wrote = scope.listed.take().unwrap_or_default();
                return None;
            }
        };
        let wrote_of = match &mut scope.listed {
            Some(listed) if is_list => listed,
            _ => &mut scope.wrote,
        };
        let mut found = None;
        for change in changes {
            match change {
                Change::Seen(SeenJob {
                    uid, rival_wrote: Some(wrote), namespace, name, ..
                }) => {
                    let before = wrote_of.insert(uid.as_str().into(), *wrote);
                    // What a list did not have yet, or has not seen so late, came after it.
                    if !is_list && before < Some(*wrote) {
                        found = Some((namespace.clone(), name.clone()));
                    }
                }
                Change::Gone(job) => {
                    wrote_of.remove(job.uid.as_str());
                }
                Change::Seen(_) | Change::Reached(_) => {}
            }
        }
        found
    }
}

/// When the built-in controller last wrote the status of a Job.
pub(crate) fn wrote(job: &Job) -> Option<Timestamp> {
    let fields = job.metadata.managed_fields.iter().flatten();
    let is_rival = |manager: Option<&str>, part: Option<&str>| {
        manager == Some(BUILT_IN) && part == Some("status")
    };
    fields
        .filter(|entry| is_rival(entry.manager.as_deref(), entry.subresource.as_deref()))
        .filter_map(|entry| Some(entry.time.as_ref()?.0))
        .max()
}

#[cfg(test)]
pub(crate) mod tests {
    use serde_json::json;

    use super::*;

    /// A Job that somebody wrote at a second of a minute.
    pub(crate) fn job(manager: &str, subresource: &str, second: u8) -> SeenJob {
        let entry = json!({
            "manager": manager, "operation": "Update", "apiVersion": "batch/v1",
            "fieldsType": "FieldsV1", "fieldsV1": {}, "subresource": subresource,
            "time": format!("2026-01-01T00:00:{second:02}Z"),
        });
        let meta = json!({"name": "j", "namespace": "n", "uid": "u", "managedFields": [entry]});
        let job = json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": meta});
        SeenJob::read(&serde_json::from_value(job).expect("a Job"))
    }

    fn seen(job: SeenJob) -> News<SeenJob> {
        News::Changes(vec![Change::Seen(job)])
    }

    #[test]
    fn a_job_that_a_later_list_lacks_is_forgotten() {
        let mut rival = Rival::default();
        let list = |jobs: Vec<SeenJob>| {
            let items = News::Items(jobs.into_iter().map(Change::Seen).collect());
            [News::Began, items, News::Listed(1)]
        };
        let known = |rival: &Rival, scope| rival.scopes[&scope].wrote.len();
        for scope in [0, 1] {
            for news in list(vec![job(BUILT_IN, "status", 1)]) {
                assert_eq!(rival.note(scope, &news), None);
            }
        }
        for news in list(Vec::new()) {
            assert_eq!(rival.note(0, &news), None);
        }
        assert_eq!((known(&rival, 0), known(&rival, 1)), (0, 1));
    }

    #[test]
    fn the_built_in_controller_is_noticed_when_it_writes_while_we_watch() {
        let mut rival = Rival::default();
        let found = Some(("n".to_owned(), "j".to_owned()));
        let listed = |job| News::Items(vec![Change::Seen(job)]);
        let rows = [
            // What it wrote before we came says nothing of now.
            (listed(job(BUILT_IN, "status", 1)), None),
            (seen(job(BUILT_IN, "status", 1)), None),
            (seen(job(BUILT_IN, "status", 2)), found.clone()),
            // CronJobs are made into Jobs by another of its controllers.
            (seen(job(BUILT_IN, "", 3)), None),
            (seen(job("stint", "status", 4)), None),
            (News::Changes(vec![Change::Gone(job(BUILT_IN, "status", 5))]), None),
            // A Job that came while we watched, or that nobody had begun.
            (seen(job(BUILT_IN, "status", 6)), found),
            (listed(job(BUILT_IN, "status", 7)), None),
        ];
        for (news, expected) in rows {
            assert_eq!(rival.note(0, &news), expected, "{news:?}");
        }
    }
}
