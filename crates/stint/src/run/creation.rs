//! Brings the objects of the manifests into the API: what Jobs need first, then the Jobs.

use std::collections::BTreeSet;
use std::time::Duration;

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Node;
use serde_json::{Value, json};
use stint_api::index_set::IndexSet;
use stint_api::names::finalizer::{FOREGROUND_DELETION, ORPHAN};
use stint_node::Runtime;
use thiserror::Error;
use tokio::time::{sleep, timeout};

use super::change::{Difference, differences};
use super::manifests::{Beside, Manifests, Written};
use super::needs;
use super::overrides::left_out;
use super::owners;
use super::room;
use crate::calls::{CallError, Calls, JOB_PODS};
use crate::pod_sight::PodSight;
use crate::progress::{completions, is_indexed};
use crate::report::Report;
use crate::words;

/// How often it is looked whether an old Job is gone.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// How long it may take until this machine is known as a node.
const NODE_PATIENCE: Duration = Duration::from_secs(2);

/// Why an object is not there.
#[derive(Debug, Error)]
pub(crate) enum CreationError {
    #[error("{place}: {source}")]
    Refused { place: String, source: CallError },
    /// It cannot become what the manifest says now.
    #[error(
        "{place}: {source}; it is there from an earlier run: give it another name, or begin anew in \
         another --data-dir"
    )]
    Set { place: String, source: CallError },
    #[error("{place}: Job {name} {why}")]
    Unfit { place: String, name: String, why: String },
    /// What the manifests ask for is not here: as it is shown, each with its place.
    #[error("{0}")]
    Unmet(String),
    #[error("cannot make the namespace {name}: {source}")]
    Namespace { name: String, source: CallError },
}

impl CreationError {
    /// What the API server said, or did not, if neither the manifest nor the command line is at
    /// fault.
    pub(crate) fn into_failure(self) -> Result<CallError, Self> {
        if self.is_wrong_usage() {
            return Err(self);
        }
        match self {
            CreationError::Refused { source, .. } | CreationError::Namespace { source, .. } => {
                Ok(source)
            }
            error @ (CreationError::Set { .. }
            | CreationError::Unfit { .. }
            | CreationError::Unmet(_)) => Err(error),
        }
    }

    /// Whether the manifest or the command line is at fault.
    pub(crate) fn is_wrong_usage(&self) -> bool {
        match self {
            CreationError::Refused { source, .. } | CreationError::Namespace { source, .. } => {
                matches!(source, CallError::Refused { code: 400..=499, .. })
            }
            CreationError::Set { .. } | CreationError::Unfit { .. } | CreationError::Unmet(_) => {
                true
            }
        }
    }
}

/// The annotation of a Job that says which of its completed indexes no run has completed, as
/// `--only-indexes` has left them out.
const LEFT_OUT: &str = "stint.dev/left-out-indexes";

/// The annotation of a Job that says which of its indexes counted as completed when it was made. Its
/// status says so a moment later: whoever finds that it does not writes it there.
const COMPLETED: &str = "stint.dev/completed-indexes";

/// What the name of a ConfigMap ends with that says what a Job came to which is removed to be made
/// anew. It is there for that moment: between the two nothing else knows it.
const RECORD_SUFFIX: &str = ".completed.stint.dev";

/// The longest list of indexes that stands in an annotation: all of an object's take 256 KiB at most. Of a
/// longer one is known what the status says, a moment later.
const MAX_ANNOTATION_BYTES: usize = 96 << 10;

/// The largest record, in bytes: a ConfigMap holds 1 MiB. Without one a stop at that moment costs what is
/// known of the Job, as it would for a Job that is deleted.
const MAX_RECORD_BYTES: usize = 768 << 10;

/// The key of the Job in it.
const RECORD_KEY: &str = "job";

/// Which indexes of the Jobs run.
#[derive(Clone, Debug)]
pub(crate) enum Wanted {
    All,
    /// These.
    Only(IndexSet),
    /// Those that an earlier run has not completed.
    NotCompleted,
}

/// A Job that is there.
#[derive(Debug)]
pub(crate) struct Made {
    pub(crate) job: Job,
    /// The indexes that are not this run's.
    pub(crate) preset: IndexSet,
    /// Those of them that an earlier run has completed.
    pub(crate) earlier: IndexSet,
    /// What to say about it.
    pub(crate) note: Option<String>,
    /// The Pods that had ended before, or begun: those end with the process that ran them.
    pub(crate) earlier_pods: Vec<PodSight>,
}

/// Makes everything that Jobs may need.
pub(crate) async fn make_others(calls: &Calls, manifests: &Manifests) -> Result<(), CreationError> {
    let is_namespace = |it: &&Written<(Beside, Value)>| it.object.0 == Beside::Namespace;
    for written in manifests.others.iter().filter(is_namespace) {
        make_other(calls, written).await?;
    }
    for name in namespaces(manifests) {
        let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        match calls.create("/api/v1/namespaces", &object).await {
            Err(source) if !source.is_conflict() => {
                return Err(CreationError::Namespace { name, source });
            }
            _ => {}
        }
    }
    for written in manifests.others.iter().filter(|written| !is_namespace(written)) {
        make_other(calls, written).await?;
    }
    Ok(())
}

/// The namespaces that objects name.
fn namespaces(manifests: &Manifests) -> BTreeSet<String> {
    let of_jobs = manifests.jobs.iter().filter_map(|it| it.object.metadata.namespace.clone());
    let others = manifests.others.iter();
    let of_others = others.filter_map(|it| it.object.1["metadata"]["namespace"].as_str());
    of_jobs.chain(of_others.map(str::to_owned)).filter(|name| !name.is_empty()).collect()
}

async fn make_other(
    calls: &Calls,
    written: &Written<(Beside, Value)>,
) -> Result<(), CreationError> {
    let (beside, object) = &written.object;
    let namespace = object["metadata"]["namespace"].as_str().filter(|name| !name.is_empty());
    let plural = beside.plural();
    let path = match beside {
        Beside::Namespace => format!("/api/v1/{plural}"),
        Beside::ServiceAccount | Beside::ConfigMap | Beside::Secret | Beside::Service => {
            format!("/api/v1/namespaces/{}/{plural}", namespace.unwrap_or("default"))
        }
    };
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    let place = || written.place.clone();
    match calls.create(&path, object).await {
        Ok(_) => return Ok(()),
        Err(error) if error.is_conflict() => {}
        Err(source) => return Err(CreationError::Refused { place: place(), source }),
    }
    // From an earlier run, or the cluster's own: it is to be what the manifest says.
    let path = format!("{path}/{name}");
    let changed = match beside {
        Beside::ConfigMap | Beside::Secret => calls.replace(&path, object).await,
        Beside::Namespace | Beside::ServiceAccount | Beside::Service => {
            calls.merge(&path, object).await
        }
    };
    changed.map(drop).map_err(|source| match source.is_invalid() {
        true => CreationError::Set { place: place(), source },
        false => CreationError::Refused { place: place(), source },
    })
}

/// Where the Pods are to run.
#[derive(Clone, Copy)]
pub(crate) struct Here<'a> {
    /// This machine, if it is known.
    pub(crate) node: Option<&'a Node>,
    pub(crate) runtime: &'a dyn Runtime,
}

/// Sees to it that everything is there which the Pods of the Jobs need, and that they can run here at
/// all: nobody could help it later.
pub(crate) async fn check_needs(
    calls: &Calls,
    manifests: &Manifests,
    here: Here<'_>,
    report: Report,
) -> Result<(), CreationError> {
    let mut wrong = String::new();
    for Written { place, origin, object: job } in &manifests.jobs {
        let namespace = job.metadata.namespace.as_deref().filter(|name| !name.is_empty());
        let namespace = namespace.unwrap_or("default");
        for need in needs::of_job(job) {
            let (plural, name) = (need.kind.plural(), &need.name);
            let found = calls.get(&format!("/api/v1/namespaces/{namespace}/{plural}/{name}")).await;
            let found =
                found.map_err(|source| CreationError::Refused { place: place.clone(), source })?;
            let Some((lack, help)) = need.lack(found.as_ref()) else { continue };
            let message = format!("{need}, {lack}, so that its Pods would wait forever");
            wrong += &origin.error(&[need.field], &message, &help, report);
        }
        let missed = owners::missed(calls, job, namespace).await;
        let missed =
            missed.map_err(|source| CreationError::Refused { place: place.clone(), source })?;
        if let Some(owner) = missed {
            let message = format!(
                "its owner, the {} {} with this uid, is not there, so that it would be removed at \
                 once",
                owner.kind, owner.name
            );
            let help = "take that out: here nothing has to own a Job";
            wrong += &origin.error(&[owners::FIELD.to_owned()], &message, help, report);
        }
        let unmet = here.node.map(|node| room::lacking(job, node)).unwrap_or_default();
        for lacking in unmet.into_iter().chain(room::never(job, here.runtime)) {
            wrong += &origin.error(&lacking.fields, &lacking.message, &lacking.help, report);
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(CreationError::Unmet(wrong)) }
}

/// This machine as a node, once it says what it has; none if it does not for a while. What an
/// earlier run has left in a data folder may be of another machine, and is not it.
pub(crate) async fn find_node(calls: &Calls, name: &str, opened_at: u64) -> Option<Node> {
    let find = async {
        loop {
            let found = calls.get(&format!("/api/v1/nodes/{name}")).await.ok().flatten();
            let node = found.and_then(|node| serde_json::from_value::<Node>(node).ok());
            if let Some(node) = node.filter(|node| is_heard_of(node, opened_at)) {
                return node;
            }
            sleep(LOOK_AGAIN).await;
        }
    };
    timeout(NODE_PATIENCE, find).await.ok()
}

/// Whether a node has told of itself since then, and what it has.
fn is_heard_of(node: &Node, opened_at: u64) -> bool {
    let version = node.metadata.resource_version.as_deref().and_then(|it| it.parse().ok());
    let has_told = node.status.as_ref().is_some_and(|status| status.allocatable.is_some());
    has_told && version.is_some_and(|version: u64| version > opened_at)
}

/// Makes a Job, or finds the one that goes on. Nobody makes Pods for it meanwhile.
pub(crate) async fn make_job(
    calls: &Calls,
    written: &Written<Job>,
    wanted: &Wanted,
) -> Result<Made, CreationError> {
    let draft = Draft::new(calls, written, wanted);
    let old = match draft.find().await? {
        Some(old) => Some(draft.complete(old).await?),
        None => None,
    };
    // An earlier run was stopped between the removal of the old one and the making of the new.
    let record = if old.is_none() { draft.record().await? } else { None };
    let Preset { done, left_out } = draft.preset(old.as_ref().or(record.as_ref()))?;
    let mut note = None;
    if let Some(old) = old {
        if !is_going(&old) && !is_over(&old) {
            draft.forget_record().await?;
            return draft.go_on(old).await;
        }
        if let Some(note) = draft.has_nothing_to_do(&old) {
            draft.forget_record().await?;
            return draft.again(old, IndexSet::new(), note).await;
        }
        note = draft.note_of_all(&old);
        match done.is_empty() {
            false => draft.keep_record(&old).await?,
            // What an earlier run wrote down is of no use to any other.
            true => draft.forget_record().await?,
        }
        draft.clear_away(&old).await?;
    }
    let made = draft.create(&done, &left_out).await?;
    draft.forget_record().await?;
    let earlier = without(&done, &left_out, completions(&written.object));
    Ok(Made { job: typed(made), preset: done, earlier, note, earlier_pods: Vec::new() })
}

/// The indexes that are not to be run.
#[derive(Debug, Default)]
struct Preset {
    done: IndexSet,
    /// Those of them that no run has completed.
    left_out: IndexSet,
}

/// A Job that is to be made, and what is wanted of it.
struct Draft<'a> {
    calls: &'a Calls,
    written: &'a Written<Job>,
    wanted: &'a Wanted,
    namespace: &'a str,
    /// Where Jobs of its namespace are.
    folder: String,
}

impl<'a> Draft<'a> {
    fn new(calls: &'a Calls, written: &'a Written<Job>, wanted: &'a Wanted) -> Self {
        let namespace = written.object.metadata.namespace.as_deref();
        let namespace = namespace.filter(|name| !name.is_empty()).unwrap_or("default");
        let folder = format!("/apis/batch/v1/namespaces/{namespace}/jobs");
        Draft { calls, written, wanted, namespace, folder }
    }

    /// Its name; one that has none is given one, and is never found again.
    fn name(&self) -> Option<&str> {
        self.written.object.metadata.name.as_deref().filter(|name| !name.is_empty())
    }

    fn path(&self) -> String {
        format!("{}/{}", self.folder, self.name().unwrap_or_default())
    }

    fn refused(&self, source: CallError) -> CreationError {
        CreationError::Refused { place: self.written.place.clone(), source }
    }

    fn unfit(&self, why: impl Into<String>) -> CreationError {
        let name = self.name().or(self.written.object.metadata.generate_name.as_deref());
        let name = name.unwrap_or_default().to_owned();
        CreationError::Unfit { place: self.written.place.clone(), name, why: why.into() }
    }

    /// What an earlier run has left of it.
    async fn find(&self) -> Result<Option<Value>, CreationError> {
        match self.name() {
            Some(_) => self.calls.get(&self.path()).await.map_err(|source| self.refused(source)),
            None => Ok(None),
        }
    }

    /// The same, with what counted as completed when it was made in its status. A run that was
    /// stopped may not have written it there.
    async fn complete(&self, old: Value) -> Result<Value, CreationError> {
        let limit = completions(&self.written.object);
        let read = |text: &Value| IndexSet::parse_lenient(text.as_str().unwrap_or(""), limit);
        let preset = read(&old["metadata"]["annotations"][COMPLETED]);
        let completed = read(&old["status"]["completedIndexes"]);
        if is_over(&old) || without(&preset, &completed, limit).is_empty() {
            return Ok(old);
        }
        let mut done = completed;
        done.union(&preset);
        let name = old["metadata"]["name"].as_str().unwrap_or_default();
        self.set_completed(name, &done).await
    }

    async fn set_completed(&self, name: &str, done: &IndexSet) -> Result<Value, CreationError> {
        let path = format!("{}/{name}/status", self.folder);
        let done = json!({"completedIndexes": done.to_string(), "succeeded": done.count()});
        let merged = self.calls.merge(&path, &json!({"status": done})).await;
        merged.map_err(|source| self.refused(source))
    }

    /// Where ConfigMaps of its namespace are, and what the one is called that is its record.
    fn record_place(&self) -> (String, String) {
        let folder = format!("/api/v1/namespaces/{}/configmaps", self.namespace);
        (folder, format!("{}{RECORD_SUFFIX}", self.name().unwrap_or_default()))
    }

    /// What an earlier one came to, if it was removed and nothing came after it.
    async fn record(&self) -> Result<Option<Value>, CreationError> {
        if self.name().is_none() {
            return Ok(None);
        }
        let (folder, name) = self.record_place();
        let found = self.calls.get(&format!("{folder}/{name}")).await;
        let found = found.map_err(|source| self.refused(source))?;
        Ok(found.and_then(|it| serde_json::from_str(it["data"][RECORD_KEY].as_str()?).ok()))
    }

    /// Writes down what it came to, before it is removed.
    async fn keep_record(&self, old: &Value) -> Result<(), CreationError> {
        let (folder, name) = self.record_place();
        let of = &old["metadata"]["annotations"];
        let job = json!({
            "metadata": {"annotations": {LEFT_OUT: of[LEFT_OUT]}},
            "status": {"completedIndexes": old["status"]["completedIndexes"]},
        });
        let job = job.to_string();
        if job.len() > MAX_RECORD_BYTES {
            return self.forget_record().await;
        }
        let data = json!({RECORD_KEY: job});
        let metadata = json!({"name": name});
        let record =
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data});
        let kept = match self.calls.create(&folder, &record).await {
            Err(error) if error.is_conflict() => {
                self.calls.merge(&format!("{folder}/{name}"), &json!({"data": data})).await
            }
            kept => kept,
        };
        kept.map(drop).map_err(|source| self.refused(source))
    }

    /// There is a Job again that says it itself.
    async fn forget_record(&self) -> Result<(), CreationError> {
        if self.name().is_none() {
            return Ok(());
        }
        let (folder, name) = self.record_place();
        let gone = self.calls.delete(&format!("{folder}/{name}")).await;
        gone.map_err(|source| self.refused(source))
    }

    fn preset(&self, old: Option<&Value>) -> Result<Preset, CreationError> {
        let job = &self.written.object;
        match (self.wanted, old) {
            (Wanted::All, _) => Ok(Preset::default()),
            (Wanted::Only(only), old) => {
                let done = left_out(job, only).map_err(|why| self.unfit(why))?;
                let completed = old.map(|old| completed(old, job)).unwrap_or_default();
                let left_out = without(&done, &completed, completions(job));
                Ok(Preset { done, left_out })
            }
            (Wanted::NotCompleted, Some(old)) => {
                Ok(Preset { done: completed(old, job), left_out: IndexSet::new() })
            }
            (Wanted::NotCompleted, None) => {
                Err(self.unfit("has not been run in this data folder: leave out --retry-failed"))
            }
        }
    }

    /// One that is unfinished, with what its manifest says now.
    async fn go_on(&self, old: Value) -> Result<Made, CreationError> {
        let limit = completions(&self.written.object);
        let indexes = |text: Option<&str>| IndexSet::parse_lenient(text.unwrap_or(""), limit);
        let open = indexes(old["status"]["completedIndexes"].as_str()).complement(limit);
        // A run that was killed may have made the Job, and not said yet what is done of it.
        let left_out = without(&indexes(left_out_of(&old)), &open, limit);
        if let Wanted::Only(only) = self.wanted {
            // What is left of it is all that was asked for, and nothing else.
            let is_all = only.first_common(&left_out).is_none();
            if !is_all || !without(&open, only, limit).is_empty() {
                return Err(self.unfit(format!(
                    "is left unfinished by an earlier run, and goes on with {}: leave out \
                     --only-indexes",
                    told_indexes(&open)
                )));
            }
        }
        let name = self.name().unwrap_or_default();
        let mut note = format!("Job {name} goes on where an earlier run left it");
        if !left_out.is_empty() && !matches!(self.wanted, Wanted::Only(_)) {
            note += &format!(
                ", without {}, as --only-indexes had it: --retry-failed runs the rest when it has \
                 ended",
                told_indexes(&left_out)
            );
        }
        let mut spec = object(&self.written.object)["spec"].take();
        // Whoever had it before may have suspended it, and nobody else could resume it.
        spec["suspend"] = json!(false);
        let changed = differences("spec", &spec, &old["spec"]);
        if changed.is_empty() {
            return self.again(old, left_out, note).await;
        }
        note += ", with what its manifest says now";
        match self.calls.merge(&self.path(), &json!({"spec": spec})).await {
            Ok(new) => self.again(new, left_out, note).await,
            Err(source) if source.is_invalid() => {
                // Of what has changed, some may be changed on the way.
                let told = source.to_string();
                let is_told = |it: &&Difference| told.contains(&format!("{}:", it.field()));
                let refused = changed.iter().find(is_told).or(changed.first());
                let what = refused.map_or(told.clone(), ToString::to_string);
                Err(self.unfit(format!(
                    "is left unfinished by an earlier run, and its manifest now says what cannot \
                     be changed on the way: {what}; go on with the manifest as it was, or begin \
                     anew in another --data-dir"
                )))
            }
            Err(source) => Err(self.refused(source)),
        }
    }

    /// That nothing of it is to be run again, and why.
    fn has_nothing_to_do(&self, old: &Value) -> Option<String> {
        let job = &self.written.object;
        let before = old["spec"]["completions"].as_u64().unwrap_or(0);
        let has_grown = is_indexed(job) && u64::from(completions(job)) > before;
        let asks_for_the_rest = matches!(self.wanted, Wanted::NotCompleted);
        let is_whole = has_condition(old, "Complete") && left_out_of(old).is_none();
        if !asks_for_the_rest || !is_whole || has_grown {
            return None;
        }
        let name = self.name().unwrap_or_default();
        let mut note = format!("Job {name} is Complete: there is nothing to run again");
        if let Some(what) = differences("spec", &object(job)["spec"], &old["spec"]).first() {
            note += &format!(
                "; its manifest has changed since: {what}; leave out --retry-failed to run it anew"
            );
        }
        Some(note)
    }

    /// That all of it is run again although only the rest was asked for, and why.
    fn note_of_all(&self, old: &Value) -> Option<String> {
        let had_indexes = old["spec"]["completionMode"] == "Indexed";
        let has_both = had_indexes && is_indexed(&self.written.object);
        if !matches!(self.wanted, Wanted::NotCompleted) || has_both {
            return None;
        }
        let name = self.name().unwrap_or_default();
        let have = if had_indexes { "has" } else { "had" };
        Some(format!(
            "Job {name} {have} no indexes by which to tell what is done: all of it runs again"
        ))
    }

    /// Removes one that is over, or about to go.
    async fn clear_away(&self, old: &Value) -> Result<(), CreationError> {
        let held = foreign_finalizers(old);
        if !held.is_empty() {
            return Err(self.unfit(format!(
                "cannot be made anew: the one of an earlier run has finalizers that nobody takes \
                 off here ({}); leave them out of the manifest, and begin anew in another \
                 --data-dir",
                held.join(", ")
            )));
        }
        let path = self.path();
        let refused = |source| self.refused(source);
        self.calls.delete(&path).await.map_err(refused)?;
        while self.calls.get(&path).await.map_err(refused)?.is_some() {
            sleep(LOOK_AGAIN).await;
        }
        Ok(())
    }

    /// Makes it, with some of its indexes completed, of which a later run finds some left out.
    async fn create(&self, done: &IndexSet, left_out: &IndexSet) -> Result<Value, CreationError> {
        let mut object = object(&self.written.object);
        if !left_out.is_empty() {
            object["metadata"]["annotations"][LEFT_OUT] = json!(left_out.to_string());
        }
        let completed = done.to_string();
        if !completed.is_empty() && completed.len() <= MAX_ANNOTATION_BYTES {
            object["metadata"]["annotations"][COMPLETED] = json!(completed);
        }
        let made = self.calls.create(&self.folder, &object).await;
        let made = made.map_err(|source| self.refused(source))?;
        if done.is_empty() {
            return Ok(made);
        }
        self.set_completed(made["metadata"]["name"].as_str().unwrap_or_default(), done).await
    }

    /// One that was there already, with the indexes of it that no run is to run.
    async fn again(
        &self,
        job: Value,
        preset: IndexSet,
        note: String,
    ) -> Result<Made, CreationError> {
        let uid = job["metadata"]["uid"].as_str().unwrap_or_default();
        let pods = self.calls.list(&format!("{JOB_PODS}%3D{uid}")).await;
        let mut earlier_pods: Vec<PodSight> = pods.map_err(|source| self.refused(source))?;
        earlier_pods.retain(|pod| !pod.is_under_way() || pod.begun_containers().next().is_some());
        let note = Some(note);
        let earlier = IndexSet::new();
        Ok(Made { job: typed(job), preset, earlier, note, earlier_pods })
    }
}

fn is_going(job: &Value) -> bool {
    !job["metadata"]["deletionTimestamp"].is_null()
}

fn is_over(job: &Value) -> bool {
    has_condition(job, "Complete") || has_condition(job, "Failed")
}

fn has_condition(job: &Value, kind: &str) -> bool {
    let conditions = job["status"]["conditions"].as_array();
    conditions.into_iter().flatten().any(|it| it["type"] == kind && it["status"] == "True")
}

/// The finalizers that no part of the cluster takes off.
fn foreign_finalizers(object: &Value) -> Vec<&str> {
    let finalizers = object["metadata"]["finalizers"].as_array().into_iter().flatten();
    let is_ours = |it: &&str| [FOREGROUND_DELETION, ORPHAN].contains(it);
    finalizers.filter_map(Value::as_str).filter(|it| !is_ours(it)).collect()
}

fn object(job: &Job) -> Value {
    serde_json::to_value(job).expect("Kubernetes types serialise to JSON")
}

/// The indexes of a new Job that an old one has completed.
fn completed(old: &Value, new: &Job) -> IndexSet {
    if !is_indexed(new) {
        return IndexSet::new();
    }
    let text = old["status"]["completedIndexes"].as_str().unwrap_or("");
    let limit = completions(new);
    let all = IndexSet::parse_lenient(text, limit);
    match left_out_of(old) {
        Some(left_out) => without(&all, &IndexSet::parse_lenient(left_out, limit), limit),
        None => all,
    }
}

/// The indexes of a Job that count as completed, and that no run has completed.
fn left_out_of(job: &Value) -> Option<&str> {
    job["metadata"]["annotations"][LEFT_OUT].as_str()
}

/// `index 3`, or `the indexes 3,7-9`.
fn told_indexes(indexes: &IndexSet) -> String {
    let what = if indexes.count() == 1 { "index" } else { "the indexes" };
    format!("{what} {}", words::indexes(indexes))
}

/// Some indexes without others, all of them below a limit.
fn without(indexes: &IndexSet, others: &IndexSet, limit: u32) -> IndexSet {
    let mut rest = indexes.complement(limit);
    rest.union(others);
    rest.complement(limit)
}

fn typed(job: Value) -> Job {
    serde_json::from_value(job).expect("the API server answers with Jobs")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::task::Poll;

    use kube::api::{Api, DeleteParams};
    use stint_api::diagnostic::Span;
    use stint_local::{Cluster, Identity, Options};

    use super::*;
    use crate::run::origin::Origin;
    use crate::source::Source;

    const JOBS: &str = "/apis/batch/v1/namespaces/default/jobs";

    fn written(metadata: Value) -> Written<Job> {
        let container = json!({"name": "main", "image": "none", "command": ["true"]});
        let spec = json!({"restartPolicy": "Never", "containers": [container]});
        let job = json!({
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": metadata,
            "spec": {"template": {"spec": spec}},
        });
        let object = serde_json::from_value(job).expect("a Job");
        let origin = Origin::new(
            Arc::new(Source::new("job.yaml", String::new())),
            Span { start: 0, end: 0 },
        );
        Written { place: "job.yaml".to_owned(), origin, object }
    }

    async fn cluster() -> (Cluster, Calls) {
        let cluster = Cluster::start(Options::default()).await.expect("it starts");
        let calls = Calls::new(cluster.client(Identity::admin()));
        (cluster, calls)
    }

    #[tokio::test]
    async fn a_job_that_is_being_deleted_is_made_anew() {
        let (cluster, calls) = cluster().await;
        let job = written(json!({"name": "late"}));
        let old = calls.create(JOBS, &object(&job.object)).await.expect("it is made");
        // It goes after what it owns, which is held.
        let owner = json!({
            "apiVersion": "batch/v1",
            "kind": "Job",
            "name": "late",
            "uid": old["metadata"]["uid"],
            "blockOwnerDeletion": true,
        });
        let metadata = json!({
            "name": "held",
            "finalizers": ["example.com/hold"],
            "ownerReferences": [owner],
        });
        let config_maps = "/api/v1/namespaces/default/configmaps";
        let held = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata});
        calls.create(config_maps, &held).await.expect("it is made");
        let jobs: Api<Job> = Api::namespaced(calls.client().clone(), "default");
        jobs.delete("late", &DeleteParams::foreground()).await.expect("it is to go");
        let going = calls.get(&format!("{JOBS}/late")).await.expect("it answers");
        let going = going.expect("it is there as long as the other is held");
        assert!(going["metadata"]["deletionTimestamp"].is_string(), "{going}");

        let made = make_job(&calls, &job, &Wanted::All).await;
        let made = made.expect("it is made");
        assert_ne!(made.job.metadata.uid.as_deref(), old["metadata"]["uid"].as_str());
        assert!(made.note.is_none(), "{:?}", made.note);
        cluster.shutdown().await.expect("it stops");
    }

    #[tokio::test]
    async fn what_is_not_counted_as_completed_is_not_left_out_whatever_was_asked_for() {
        let (cluster, calls) = cluster().await;
        let mut job = written(json!({"name": "some"}));
        let spec = job.object.spec.as_mut().expect("it has one");
        (spec.completions, spec.completion_mode) = (Some(4), Some("Indexed".to_owned()));
        let mut half = object(&job.object);
        half["metadata"]["annotations"] = json!({LEFT_OUT: "0,3"});
        calls.create(JOBS, &half).await.expect("it is made");
        let status = |done: &str, count: u32| {
            let status = json!({"completedIndexes": done, "succeeded": count});
            (format!("{JOBS}/some/status"), json!({"status": status}))
        };
        for (done, count, preset) in [("", 0, ""), ("0", 1, "0"), ("0,1,3", 3, "0,3")] {
            let (path, status) = status(done, count);
            calls.merge(&path, &status).await.expect("it is written");
            let made = make_job(&calls, &job, &Wanted::All).await.expect("it goes on");
            assert_eq!(made.preset.to_string(), preset, "{done}");
        }
        cluster.shutdown().await.expect("it stops");
    }

    /// Whatever is stopped after a number of steps: by Ctrl-C, or with its process.
    async fn cut_after<T>(steps: usize, work: impl Future<Output = T>) -> Option<T> {
        let (mut work, mut done) = (std::pin::pin!(work), 0);
        std::future::poll_fn(|context| {
            if done == steps {
                return Poll::Ready(None);
            }
            done += 1;
            work.as_mut().poll(context).map(Some)
        })
        .await
    }

    #[tokio::test]
    async fn what_was_completed_is_known_wherever_the_making_anew_was_cut() {
        let (cluster, calls) = cluster().await;
        for steps in 0.. {
            let name = format!("cut-{steps}");
            let mut job = written(json!({"name": name}));
            let spec = job.object.spec.as_mut().expect("it has one");
            (spec.completions, spec.completion_mode) = (Some(4), Some("Indexed".to_owned()));
            let mut old = object(&job.object);
            old["metadata"]["annotations"] = json!({LEFT_OUT: "3"});
            // Nobody runs it.
            old["spec"]["suspend"] = json!(true);
            calls.create(JOBS, &old).await.expect("it is made");
            let failed = |kind: &str| {
                let time = "2030-01-01T00:00:00Z";
                json!({"type": kind, "status": "True", "reason": "FailedIndexes", "message": "",
                    "lastProbeTime": time, "lastTransitionTime": time})
            };
            let status = json!({"completedIndexes": "0,1,3", "succeeded": 3, "failed": 1,
                "startTime": "2030-01-01T00:00:00Z",
                "conditions": [failed("FailureTarget"), failed("Failed")]});
            let path = format!("{JOBS}/{name}/status");
            calls.merge(&path, &json!({"status": status})).await.expect("it is written");
            let wanted = Wanted::NotCompleted;
            let whole = cut_after(steps, make_job(&calls, &job, &wanted)).await;
            let made = make_job(&calls, &job, &wanted).await.expect("it is made");
            let status = made.job.status.unwrap_or_default();
            assert_eq!(status.completed_indexes.as_deref(), Some("0,1"), "after {steps} steps");
            assert_eq!(status.succeeded, Some(2), "after {steps} steps");
            let config_maps = "/api/v1/namespaces/default/configmaps";
            let left: Vec<Value> = calls.list(config_maps).await.expect("it answers");
            let is_of_it = |it: &Value| {
                it["metadata"]["name"].as_str().is_some_and(|it| it.starts_with(&name))
            };
            assert!(!left.iter().any(is_of_it), "{left:?}");
            if whole.is_some() {
                assert!(steps > 3, "it has some steps");
                break;
            }
        }
        cluster.shutdown().await.expect("it stops");
    }

    #[tokio::test]
    async fn a_job_that_would_never_go_is_refused_and_left_alone() {
        let (cluster, calls) = cluster().await;
        let job = written(json!({"name": "held", "finalizers": ["example.com/hold"]}));
        calls.create(JOBS, &object(&job.object)).await.expect("it is made");
        calls.delete(&format!("{JOBS}/held")).await.expect("it is to go");
        let refused = make_job(&calls, &job, &Wanted::All).await;
        let refused = refused.map(|made| made.job).expect_err("it would wait forever");
        assert!(refused.is_wrong_usage());
        let said = refused.to_string();
        assert!(said.contains("(example.com/hold); leave them out"), "{said}");
        cluster.shutdown().await.expect("it stops");
    }
}
