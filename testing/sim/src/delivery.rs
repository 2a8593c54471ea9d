//! What happens to a request between a controller and the API server, and to its answer.

use stint_ledger::op::{Applied, OpKind, Outcome};

use crate::choice::{ControllerId, OpKey, Verb, Weather};
use crate::controller::Flight;
use crate::history::Actor;
use crate::invariant::{self, Broken};
use crate::request;
use crate::world::World;

impl World {
    pub(crate) fn do_request(&mut self, c: ControllerId, key: &OpKey) -> Result<bool, Broken> {
        let Some(flight) = self.take_flight(c, key, false) else {
            return Ok(false);
        };
        let outcome = self.carry_out(&flight, Actor::Controller(c))?;
        self.settle(c, &flight, outcome)
    }

    pub(crate) fn apply_request(&mut self, c: ControllerId, key: &OpKey) -> Result<bool, Broken> {
        let Some(mut flight) = self.take_flight(c, key, false) else {
            return Ok(false);
        };
        flight.outcome = Some(self.carry_out(&flight, Actor::Controller(c))?);
        self.controllers[c].flights.push(flight);
        Ok(true)
    }

    pub(crate) fn answer_request(&mut self, c: ControllerId, key: &OpKey) -> Result<bool, Broken> {
        let Some(mut flight) = self.take_flight(c, key, true) else {
            return Ok(false);
        };
        let outcome = flight.outcome.take().expect("a request that was done has an outcome");
        self.settle(c, &flight, outcome)
    }

    pub(crate) fn refuse_request(
        &mut self,
        c: ControllerId,
        key: &OpKey,
        weather: Weather,
    ) -> Result<bool, Broken> {
        match self.take_flight(c, key, false) {
            Some(flight) => self.settle(c, &flight, Outcome::Refused(request::refusal(weather))),
            None => Ok(false),
        }
    }

    pub(crate) fn lose_answer(&mut self, c: ControllerId, key: &OpKey) -> Result<bool, Broken> {
        if let Some(flight) = self.take_flight(c, key, true) {
            return self.settle(c, &flight, Outcome::InDoubt);
        }
        let Some(flight) = self.take_flight(c, key, false) else {
            return Ok(false);
        };
        self.carry_out(&flight, Actor::Controller(c))?;
        self.settle(c, &flight, Outcome::InDoubt)
    }

    pub(crate) fn time_out(&mut self, c: ControllerId, key: &OpKey) -> Result<bool, Broken> {
        let Some(flight) = self.take_flight(c, key, false) else {
            return Ok(false);
        };
        self.late.push(flight.clone());
        self.settle(c, &flight, Outcome::InDoubt)
    }

    /// A creation that waits in the controller, and that its ledger no longer wants, is not
    /// sent.
    pub(crate) fn recall(&mut self, c: ControllerId, key: &OpKey) -> Result<bool, Broken> {
        let now = self.now;
        let Some(controller) = self.controllers.get_mut(c) else {
            return Ok(false);
        };
        if key.verb != Verb::Create || !controller.recall(key, now) {
            return Ok(false);
        }
        self.ask(c, &key.job_uid)?;
        Ok(true)
    }

    fn take_flight(&mut self, c: ControllerId, key: &OpKey, is_done: bool) -> Option<Flight> {
        self.controllers.get_mut(c)?.take_flight(key, is_done)
    }

    fn settle(
        &mut self,
        c: ControllerId,
        flight: &Flight,
        outcome: Outcome,
    ) -> Result<bool, Broken> {
        if let Outcome::Applied(Applied::Job(view)) = &outcome
            && let Some(job) = self.history.jobs.get(&flight.job_uid)
            && let Some(job) = job.at(view.resource_version.parse().unwrap_or(0))
        {
            self.controllers[c].note_end(job);
            self.controllers[c].end_in_doubt.remove(&flight.job_uid);
        }
        let seen = self.controllers[c].jobs_told;
        let is_overtaken = match &flight.kind {
            // Whoever has seen the Job change knows that it can no longer be written.
            OpKind::WriteStatus { version, .. } => {
                let life = self.history.jobs.get(&flight.job_uid);
                life.and_then(|life| life.at(seen)).is_some_and(|job| job.version > *version)
            }
            _other => true,
        };
        let is_in_doubt = matches!(outcome, Outcome::InDoubt) && !is_overtaken;
        if is_in_doubt && invariant::pods::writes_end(flight) {
            self.controllers[c].end_in_doubt.insert(flight.job_uid.clone());
        }
        invariant::pace::note_outcome(self, c, flight, &outcome);
        self.controllers[c].settle(flight, outcome);
        self.ask(c, &flight.job_uid).map(|()| true)
    }
}
