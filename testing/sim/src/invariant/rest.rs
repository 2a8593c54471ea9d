//! Checks when nothing moves any more.

use stint_api::condition;

use super::{Checked, Invariant, holds};
use crate::reference;
use crate::world::World;

/// Whether the Job is gone, finished, or such that it can never end.
pub fn is_over(world: &World) -> bool {
    world.api.now.job.as_ref().is_none_or(|job| {
        job.view.is_err() || condition::is_finished(condition::of(job.job.status.as_ref()))
    })
}

/// Everything that must hold at rest.
pub fn check(world: &World) -> Checked {
    world.check(holds(is_over(world), Invariant::Ends, || {
        let job = world.api.now.job.as_ref();
        let status = job.map_or_else(String::new, |job| crate::request::short(job));
        let pods: Vec<String> = world
            .api
            .now
            .pods
            .values()
            .map(|pod| format!("{} {:?}", pod.facts.name, pod.facts.phase))
            .collect();
        format!("at rest with {status}; Pods: {}", pods.join(", "))
    }))?;
    world.check(no_stranded_finalizer(world))?;
    world.check(status_is_true(world))?;
    for (uid, life) in &world.history.jobs {
        let is_finished = life.finished_at.is_some()
            && life.deleted_at.is_none_or(|deleted| Some(deleted) > life.finished_at);
        if is_finished && !life.is_corrupted {
            world.check(reference::check_final(world, uid, life))?;
        }
    }
    Ok(())
}

/// A suspended Job has removed its Pods once nothing moves any more.
pub fn check_suspended(world: &World) -> Checked {
    let Some(job) = world.api.now.job.as_ref().filter(|job| job.deletion.is_none()) else {
        return Ok(());
    };
    let pods = world.api.now.pods.values();
    let active: Vec<&str> = pods
        .filter(|pod| pod.owner_uid() == Some(&job.uid) && pod.facts.is_active())
        .map(|pod| pod.facts.name.as_str())
        .collect();
    world.check(holds(active.is_empty(), Invariant::SuspendedIsIdle, || active.join(", ")))
}

/// Nothing will happen any more, so a finalizer that is still there stays for ever. The
/// orphan of a Job that is gone can only be traced by its label.
fn no_stranded_finalizer(world: &World) -> Checked {
    for pod in world.api.now.pods.values().filter(|pod| pod.facts.is_tracked) {
        let is_traceable = pod.owner_uid().is_some() || pod.label_uid.is_some();
        holds(!is_traceable, Invariant::NoStrandedFinalizer, || format!("{:?}", pod.facts))?;
    }
    Ok(())
}

/// A finished Job says that nothing is active.
fn status_is_true(world: &World) -> Checked {
    let Some(job) = world.api.now.job.as_ref().filter(|job| job.view.is_ok()) else {
        return Ok(());
    };
    let status = job.job.status.clone().unwrap_or_default();
    let busy = [status.active, status.ready, status.terminating];
    let is_quiet = busy.iter().all(|count| count.unwrap_or(0) == 0);
    holds(is_quiet, Invariant::NotFinishedWhileBusy, || crate::request::brief(&status))
}
