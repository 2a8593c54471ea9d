//! What happens to a controller: its watches deliver or break, it crashes, is restarted,
//! leads or not, and its clock jumps.

use stint_api::feature_gates::Gate;

use crate::api::Manager;
use crate::choice::ControllerId;
use crate::controller::Controller;
use crate::invariant::Broken;
use crate::world::World;

impl World {
    pub(crate) fn deliver_job(&mut self, c: ControllerId) -> Result<bool, Broken> {
        if !self.leads(c) {
            return Ok(false);
        }
        match self.controllers[c].deliver_job(&self.api) {
            Some(uid) => self.ask(c, &uid).map(|()| true),
            None => Ok(false),
        }
    }

    pub(crate) fn deliver_pods(&mut self, c: ControllerId, count: u32) -> Result<bool, Broken> {
        if !self.leads(c) || self.controllers[c].pods_cursor >= self.api.version() {
            return Ok(false);
        }
        self.controllers[c].deliver_pods(&self.api, count);
        self.ask_all(c).map(|()| true)
    }

    pub(crate) fn repeat_pod(&mut self, c: ControllerId) -> Result<bool, Broken> {
        if !self.leads(c) || !self.controllers[c].repeat_pod() {
            return Ok(false);
        }
        self.ask_all(c).map(|()| true)
    }

    pub(crate) fn relist(&mut self, c: ControllerId, jobs: u32, pods: u32) -> Result<bool, Broken> {
        if !self.leads(c) {
            return Ok(false);
        }
        let (jobs, pods) = (self.version_before(jobs), self.version_before(pods));
        self.controllers[c].relist(&self.api, jobs, pods);
        self.ask_all(c).map(|()| true)
    }

    pub(crate) fn crash(&mut self, c: ControllerId, jobs: u32, pods: u32) -> Result<bool, Broken> {
        if !self.leads(c) {
            return Ok(false);
        }
        let (jobs, pods) = (self.version_before(jobs), self.version_before(pods));
        self.late.extend(self.controllers[c].stop());
        self.controllers[c].start(&self.api, jobs, pods);
        self.starts.push(self.api.version());
        self.ask_all(c).map(|()| true)
    }

    pub(crate) fn set_gate(
        &mut self,
        c: ControllerId,
        gate: Gate,
        is_on: bool,
    ) -> Result<bool, Broken> {
        if !self.leads(c) || self.controllers[c].gates.enabled(gate) == is_on {
            return Ok(false);
        }
        let controller = &mut self.controllers[c];
        controller.gates = controller.gates.with(gate, is_on);
        self.loosened.gates.push(gate);
        self.crash(c, 0, 0)
    }

    pub(crate) fn lead(&mut self, c: ControllerId, is_leading: bool) -> Result<bool, Broken> {
        if c >= self.controllers.len() || self.leads(c) == is_leading {
            return Ok(false);
        }
        let version = self.api.version();
        if is_leading {
            self.controllers[c].start(&self.api, version, version);
            self.starts.push(version);
        } else {
            self.late.extend(self.controllers[c].stop());
        }
        if self.has_two_leaders() {
            // Those that are deleted, too: one of the leaders may not know that yet.
            self.loosened.two_leaders.extend(self.history.jobs.keys().cloned());
        }
        self.ask_all(c).map(|()| true)
    }

    pub(crate) fn jump_clock(&mut self, c: ControllerId, seconds: i32) -> Result<bool, Broken> {
        if !self.leads(c) {
            return Ok(false);
        }
        self.controllers[c].clock_offset += seconds;
        self.loosened.clock_jumped = true;
        self.ask_all(c).map(|()| true)
    }

    /// Whether two controllers of a kind lead now.
    pub(crate) fn has_two_leaders(&self) -> bool {
        [Manager::BuiltIn, Manager::Custom].into_iter().any(|manager| {
            let is_leader = |it: &&Controller| it.is_leading && it.manager == manager;
            self.controllers.iter().filter(is_leader).count() > 1
        })
    }

    fn leads(&self, c: ControllerId) -> bool {
        self.controllers.get(c).is_some_and(|controller| controller.is_leading)
    }

    fn version_before(&self, by: u32) -> u64 {
        self.api.version().saturating_sub(u64::from(by)).max(self.api.base)
    }
}
