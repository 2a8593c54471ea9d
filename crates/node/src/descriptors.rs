//! How many descriptors this process may have. Each container that runs costs three, one for each of
//! its outputs and one for its log, and the usual limit is meant for programs that need a few.

use std::io;
use std::sync::OnceLock;

use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// What this process had when it was started, if it has allowed itself more.
static BEFORE: OnceLock<Rlimit> = OnceLock::new();

/// What some machines allow although they say that there is no limit.
const OFTEN_ALLOWED: u64 = 10_240;

/// Allows this process as many descriptors as it may have at all. Containers get what it had
/// before. For who runs a node: to be called once, when nothing has been started yet.
pub fn raise_descriptor_limit() {
    let before = *BEFORE.get_or_init(|| getrlimit(Resource::Nofile));
    let raise =
        |current| setrlimit(Resource::Nofile, Rlimit { current, maximum: before.maximum }).is_ok();
    let is_raised = raise(before.maximum)
        || (before.maximum.is_none()
            && before.current.is_some_and(|current| current < OFTEN_ALLOWED)
            && raise(Some(OFTEN_ALLOWED)));
    if !is_raised {
        tracing::debug!(?before, "the limit on descriptors stays as it is");
    }
}

/// What containers get.
#[cfg(target_os = "linux")]
pub(crate) fn of_containers() -> Rlimit {
    BEFORE.get().copied().unwrap_or_else(|| getrlimit(Resource::Nofile))
}

/// Whether this process has as many as it may have.
pub(crate) fn is_short(error: &io::Error) -> bool {
    Errno::from_io_error(error) == Some(Errno::MFILE)
}

/// What the machine said, and the remedy if that was that there are no more descriptors.
pub(crate) fn explained(error: &io::Error) -> String {
    if !is_short(error) {
        return error.to_string();
    }
    let most = getrlimit(Resource::Nofile).current;
    let most = most.map_or("no limit on".to_owned(), |most| most.to_string());
    format!(
        "{error}: this process may have {most} descriptors, and each container that runs takes \
         three; raise the limit (`ulimit -n`, or LimitNOFILE= of a systemd unit) and start again, or \
         run fewer Pods at once"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_want_of_descriptors_has_the_remedy() {
        let said = explained(&io::Error::from_raw_os_error(libc::EMFILE));
        assert!(said.contains("Too many open files") && said.contains("ulimit -n"), "{said}");
        assert!(!explained(&io::Error::from_raw_os_error(libc::ENOENT)).contains("ulimit"));
        assert_eq!(explained(&io::Error::other("else")), "else");
    }
}
