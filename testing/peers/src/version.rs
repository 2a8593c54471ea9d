//! Where versions of Kubernetes differ in what they do with Jobs, and why. Everything else is
//! expected to be the same on each of them.

use std::fmt;

/// A version of Kubernetes, 1.x.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Version {
    minor: u32,
}

impl Version {
    /// Reads what a server says of itself, such as `v1.34.4`.
    pub fn read(text: &str) -> Option<Self> {
        let minor = text.strip_prefix("v1.")?.split('.').next()?.parse().ok()?;
        Some(Version { minor })
    }

    /// Whether the built-in controller leaves `status.startTime` on a Job that is suspended again,
    /// until it is resumed. Stint takes it away, whatever the version.
    ///
    /// KEP-5440: it takes it away with MutableSchedulingDirectivesForSuspendedJobs, which is there
    /// since 1.35 and on since 1.36.
    ///
    /// What follows from it: kube-apiserver without that feature lets the template of a suspended
    /// Job be changed while it has no start time. So it refuses that of a Job of the built-in
    /// controller once it has run, and takes it of a Job of stint.
    pub fn keeps_start_time(self) -> bool {
        self.minor < 36
    }

    /// Whether it is the version whose answers the rows of requests and of rules have, and whose
    /// descriptions the embedded server has.
    pub fn is_that_of_rows(self) -> bool {
        self.minor == 36
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "1.{}", self.minor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_read_as_servers_write_it() {
        assert_eq!(Version::read("v1.34.4"), Some(Version { minor: 34 }));
        assert_eq!(Version::read("v1.36.0-rc.1+abc"), Some(Version { minor: 36 }));
        assert_eq!(Version::read("1.36.0"), None);
        assert_eq!(Version::read("v2.0.0"), None);
    }

    #[test]
    fn start_times_go_since_1_36() {
        let keeps = |text: &str| Version::read(text).expect("a version").keeps_start_time();
        assert_eq!(["v1.34.4", "v1.35.0", "v1.36.3"].map(keeps), [true, true, false]);
    }

    #[test]
    fn rows_are_of_1_36() {
        let is_theirs = |text: &str| Version::read(text).expect("a version").is_that_of_rows();
        assert_eq!(["v1.35.0", "v1.36.3", "v1.37.0"].map(is_theirs), [false, true, false]);
    }
}
