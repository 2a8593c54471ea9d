//! How often a ledger asks for the same.

use stint_ledger::op::{Outcome, Refusal};

use super::{Broken, Checked, Invariant, holds};
use crate::choice::ControllerId;
use crate::controller::Flight;
use crate::world::World;

/// Takes note of a request that came to nothing.
pub fn note_outcome(world: &mut World, c: ControllerId, flight: &Flight, outcome: &Outcome) {
    let has_failed = match outcome {
        Outcome::InDoubt => true,
        Outcome::Refused(
            Refusal::TryLater(_) | Refusal::Rejected(_) | Refusal::NamespaceGoes(_),
        ) => true,
        // The object has changed: what is asked next is asked of another version.
        Outcome::Refused(Refusal::Conflict | Refusal::NotFound | Refusal::AlreadyExists) => false,
        Outcome::Applied(_) => false,
    };
    let controller = &mut world.controllers[c];
    let moment = (world.now, controller.clock(world.now));
    let (at, failed) = &mut controller.failed_requests;
    if *at != moment {
        *at = moment;
        failed.clear();
    }
    if has_failed {
        failed.push((flight.job_uid.clone(), flight.kind.clone()));
    }
}

/// The same request must not be sent again at the moment at which it failed.
pub fn before_sending(world: &World, c: ControllerId, flight: &Flight) -> Checked {
    let controller = &world.controllers[c];
    let (at, failed) = &controller.failed_requests;
    let is_repeated = *at == (world.now, controller.clock(world.now))
        && failed.iter().any(|(uid, kind)| *uid == flight.job_uid && *kind == flight.kind);
    let is_fine = !is_repeated || world.loosened.clock_jumped;
    world.check(holds(is_fine, Invariant::NoHotLoop, || {
        format!("{} is sent again at the moment at which it failed", flight.key)
    }))
}

/// A ledger that was just asked does not want to be asked again at once.
pub fn after_asking(world: &World, c: ControllerId, uid: &str) -> Result<(), Broken> {
    let controller = &world.controllers[c];
    let clock = controller.clock(world.now);
    let wake_at = controller.ledgers.get(uid).and_then(|ledger| ledger.wake_at());
    world.check(holds(wake_at.is_none_or(|at| at > clock), Invariant::WakesLater, || {
        format!("asked at {clock}, wants to be woken at {wake_at:?}")
    }))
}
