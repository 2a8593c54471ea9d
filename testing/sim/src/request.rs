//! What the API server does with one request of a controller.

use k8s_openapi::api::batch::v1::JobStatus;
use stint_api::condition;
use stint_api::feature_gates::FeatureGates;
use stint_api::validation::job_status::validate_job_status_update;
use stint_ledger::op::{Applied, NewPod, OpKind, Outcome, PodRef, Refusal};
use stint_ledger::pod_facts::{Owner, PodFacts, PodPhase};

use crate::api::{StoredJob, StoredPod};
use crate::choice::Weather;
use crate::controller::Flight;
use crate::history::{Actor, PodLife};
use crate::invariant::{self, Broken, Invariant};
use crate::world::World;

/// The answer to a request that is refused for no fault of its own.
pub fn refusal(weather: Weather) -> Refusal {
    match weather {
        Weather::Conflict => Refusal::Conflict,
        Weather::Rejected => Refusal::Rejected("denied by a webhook".to_owned()),
        Weather::TooManyRequests => Refusal::TryLater("too many requests".to_owned()),
        Weather::ServerTrouble => Refusal::TryLater("internal error".to_owned()),
        Weather::Quota => Refusal::TryLater("exceeded quota".to_owned()),
    }
}

impl World {
    /// Carries a request out.
    pub(crate) fn carry_out(&mut self, flight: &Flight, actor: Actor) -> Result<Outcome, Broken> {
        if let Some(weather) = self.storms.iter().find_map(|storm| storm.refuses(&flight.kind)) {
            return Ok(Outcome::Refused(refusal(weather)));
        }
        let outcome = match &flight.kind {
            OpKind::CreatePod(new) => self.create_pod(flight, new, actor)?,
            OpKind::DeletePod(pod) => match self.find(pod) {
                Err(refusal) => Outcome::Refused(refusal),
                Ok(_) => {
                    self.api.delete_pod(&pod.name);
                    self.answer_pod(flight, pod)
                }
            },
            OpKind::RemoveFinalizer(pod) => self.remove_finalizer(flight, pod)?,
            OpKind::AdoptPod(pod) => self.adopt(flight, pod),
            OpKind::ReleasePod(pod) => self.release(flight, pod),
            OpKind::WriteStatus { version, status } => {
                self.write_status(flight, *version, status, actor)?
            }
            OpKind::LookUpJob => match self.api.job(&flight.job_uid).map(|job| &job.view) {
                None => Outcome::Applied(Applied::NoJob),
                Some(Ok(view)) => Outcome::Applied(Applied::Job(Box::new(view.clone()))),
                // There is no way to answer with a Job that cannot be read.
                Some(Err(_)) => Outcome::InDoubt,
            },
            OpKind::LookUpPod(name) => match self.api.pod(name) {
                None => Outcome::Applied(Applied::NoPod),
                Some(pod) => {
                    Outcome::Applied(Applied::Pod(Box::new(pod.answered_to(flight.manager))))
                }
            },
            OpKind::LookUpPods => self.list_pods(flight),
            OpKind::EmitEvent(_) | OpKind::Record(_) => {
                unreachable!("ops without an outcome are not sent")
            }
        };
        self.history.absorb(&self.api, actor);
        Ok(outcome)
    }

    fn create_pod(
        &mut self,
        flight: &Flight,
        new: &NewPod,
        actor: Actor,
    ) -> Result<Outcome, Broken> {
        if self.api.pod(&new.name).is_some() {
            return Ok(Outcome::Refused(Refusal::AlreadyExists));
        }
        let uid = self.api.next_pod_uid(&new.name);
        let now = self.now_in_seconds();
        let facts = PodFacts {
            name: new.name.clone(),
            uid,
            version: 0,
            owner: Owner::Controller(flight.job_uid.clone()),
            is_tracked: true,
            phase: PodPhase::Pending,
            created: now,
            is_deleted: false,
            index: new.index,
            failure_count: new.failure_count.unwrap_or(0),
            ignored_failure_count: new.ignored_failure_count,
            interruption_count: new.interruption_count,
            is_scheduled: false,
            ready_since: None,
            restart_count: 0,
            finished_at: now,
            exits: Vec::new(),
            conditions: Vec::new(),
        };
        self.api.put_pod(StoredPod {
            facts,
            finalizer_of: flight.manager,
            label_uid: Some(flight.job_uid.clone()),
        });
        self.history.absorb(&self.api, actor);
        self.stats.pods += 1;
        invariant::pods::after_create(self, flight, new, actor)?;
        let pod = self.api.pod(&new.name).expect("it was just created");
        Ok(Outcome::Applied(Applied::Pod(Box::new(pod.answered_to(flight.manager)))))
    }

    /// The Pod that a request means, as it is now.
    fn find(&self, pod: &PodRef) -> Result<&StoredPod, Refusal> {
        let found = self.api.pod(&pod.name).filter(|found| found.facts.uid == pod.uid);
        let found = found.ok_or(Refusal::NotFound)?;
        match pod.version {
            Some(version) if version != found.facts.version => Err(Refusal::Conflict),
            _ => Ok(found),
        }
    }

    fn answer_pod(&self, flight: &Flight, pod: &PodRef) -> Outcome {
        match self.api.pod(&pod.name).filter(|found| found.facts.uid == pod.uid) {
            Some(found) => {
                Outcome::Applied(Applied::Pod(Box::new(found.answered_to(flight.manager))))
            }
            None => Outcome::Applied(Applied::NoPod),
        }
    }

    fn remove_finalizer(&mut self, flight: &Flight, pod: &PodRef) -> Result<Outcome, Broken> {
        let found = match self.find(pod) {
            Err(refusal) => return Ok(Outcome::Refused(refusal)),
            Ok(found) => found.clone(),
        };
        if found.facts.is_tracked && found.finalizer_of == flight.manager {
            invariant::pods::before_untracking(self, flight, &found)?;
            self.api.change_pod(&pod.name, |pod| pod.facts.is_tracked = false);
        }
        Ok(self.answer_pod(flight, pod))
    }

    fn adopt(&mut self, flight: &Flight, pod: &PodRef) -> Outcome {
        let lives = self.api.job(&flight.job_uid).is_some_and(|job| job.deletion.is_none());
        let (owner, is_deleted) = match self.find(pod) {
            Err(refusal) => return Outcome::Refused(refusal),
            Ok(found) => (found.facts.owner.clone(), found.facts.is_deleted),
        };
        // Nobody may add a finalizer to what is being deleted.
        if !lives || is_deleted {
            return Outcome::Refused(Refusal::Rejected("the Job or Pod is going".to_owned()));
        }
        let mine = Owner::Controller(flight.job_uid.clone());
        if owner != Owner::Nobody && owner != mine {
            return Outcome::Refused(Refusal::Conflict);
        }
        self.api.change_pod(&pod.name, |pod| {
            pod.facts.owner = mine;
            pod.facts.is_tracked = true;
            pod.finalizer_of = flight.manager;
        });
        self.answer_pod(flight, pod)
    }

    fn release(&mut self, flight: &Flight, pod: &PodRef) -> Outcome {
        let owner = match self.find(pod) {
            Err(refusal) => return Outcome::Refused(refusal),
            Ok(found) => found.facts.owner.clone(),
        };
        if owner == Owner::Controller(flight.job_uid.clone()) {
            self.api.change_pod(&pod.name, |pod| {
                pod.facts.owner = Owner::Nobody;
                pod.facts.is_tracked &= pod.finalizer_of != flight.manager;
            });
        }
        self.answer_pod(flight, pod)
    }

    fn write_status(
        &mut self,
        flight: &Flight,
        version: u64,
        status: &JobStatus,
        actor: Actor,
    ) -> Result<Outcome, Broken> {
        let Some(old) = self.api.now.job.clone() else {
            return Ok(Outcome::Refused(Refusal::NotFound));
        };
        if old.uid != flight.job_uid || old.version != version {
            return Ok(Outcome::Refused(Refusal::Conflict));
        }
        let mut new = old.job.clone();
        new.status = Some(status.clone());
        let errors = validate_job_status_update(&new, &old.job, &FeatureGates::default());
        if let Some(error) = errors.first() {
            let details = format!("{error}\n  before {}\n  after  {}", short(&old), brief(status));
            self.check(Err(Broken::new(Invariant::StatusRules, details)))?;
            return Ok(Outcome::Refused(Refusal::Rejected(error.to_string())));
        }
        invariant::status::before_write(self, flight, &old, status, actor)?;
        if condition::is_finished(status.conditions.as_deref().unwrap_or_default()) {
            self.note_unseen(flight);
        }
        self.api.put_job(old.uid.clone(), new, old.deletion);
        self.stats.statuses += 1;
        let view = self.api.now.job.as_ref().and_then(|job| job.view.clone().ok());
        let view = view.expect("a Job whose status was computed can be read");
        Ok(Outcome::Applied(Applied::Job(Box::new(view))))
    }

    /// Of two leaders, one may write the end of a Job before it is told of a Pod that the other
    /// has made.
    fn note_unseen(&mut self, flight: &Flight) {
        if !self.loosened.two_leaders.contains(&flight.job_uid) {
            return;
        }
        let is_unseen = |pod: &PodLife| {
            pod.made_at() > flight.pods_seen && pod.made_by != Actor::Controller(flight.sender)
        };
        let unseen = self.history.pods_of(&flight.job_uid).filter(|pod| is_unseen(pod));
        let uids: Vec<String> = unseen.map(|pod| pod.last().facts.uid.clone()).collect();
        self.history.miss(&uids);
    }

    fn list_pods(&self, flight: &Flight) -> Outcome {
        let uid = flight.job_uid.as_str();
        // What others control is not the Job's, whatever its labels say.
        let is_meant = |pod: &&std::sync::Arc<StoredPod>| {
            pod.owner_uid().or(pod.label_uid.as_deref()) == Some(uid)
        };
        let pods = self
            .api
            .now
            .pods
            .values()
            .filter(is_meant)
            .map(|pod| (pod.answered_to(flight.manager), pod.label_uid.as_deref() == Some(uid)))
            .collect();
        Outcome::Applied(Applied::Pods { pods, version: self.api.version() })
    }
}

/// A Job's status in one line.
pub fn short(job: &StoredJob) -> String {
    job.job.status.as_ref().map_or_else(|| "nothing".to_owned(), brief)
}

/// A status in one line: what is there, without times.
pub fn brief(status: &JobStatus) -> String {
    let mut value = serde_json::to_value(status).expect("a status is JSON");
    if let Some(conditions) = value.get_mut("conditions").and_then(|list| list.as_array_mut()) {
        for condition in conditions {
            *condition = format!(
                "{}={} {}",
                condition["type"].as_str().unwrap_or("?"),
                condition["status"].as_str().unwrap_or("?"),
                condition["reason"].as_str().unwrap_or("?"),
            )
            .into();
        }
    }
    value.to_string()
}
