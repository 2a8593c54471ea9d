//! What a process has used, by what Linux says of it.

use std::fmt;
use std::io;
use std::time::Duration;

/// What a process has used.
#[derive(Clone, Copy, Debug)]
pub struct Usage {
    /// The memory that it has, in bytes.
    pub resident: u64,
    /// The most that it has had so far.
    pub peak: u64,
    /// Processor time, its own and the system's on its behalf.
    pub processor: Duration,
    /// What it has read from the API, in bytes.
    pub read: u64,
}

impl Usage {
    /// What a process has used so far; what it has read is for others to say.
    pub fn of(id: u32) -> io::Result<Self> {
        let status = std::fs::read_to_string(format!("/proc/{id}/status"))?;
        let stat = std::fs::read_to_string(format!("/proc/{id}/stat"))?;
        let usage = ticks_at(&stat, OWN).map(time_of);
        let usage = usage.and_then(|processor| {
            Some(Usage {
                resident: bytes_of(&status, "VmRSS:")?,
                peak: bytes_of(&status, "VmHWM:")?,
                processor,
                read: 0,
            })
        });
        usage.ok_or_else(|| io::Error::other(format!("/proc/{id} is not as it should be")))
    }
}

/// The processor time of all children of this process that have ended and were waited for, with
/// theirs; nothing where that is not told.
pub fn children_processor() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    ticks_at(&stat, CHILDREN).map_or(Duration::ZERO, time_of)
}

impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
        write!(
            f,
            "{:.1} MiB resident, at most {:.1} MiB, {:.2} s of processor time, {:.2} MiB read",
            mib(self.resident),
            mib(self.peak),
            self.processor.as_secs_f64(),
            mib(self.read)
        )
    }
}

/// A line such as `VmRSS:      123 kB`.
fn bytes_of(status: &str, key: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(key))?;
    let kib: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kib << 10)
}

/// Where utime and stime are, behind the name in parentheses.
const OWN: usize = 11;

/// Where cutime and cstime are.
const CHILDREN: usize = 13;

/// Two numbers of ticks that follow each other, together.
fn ticks_at(stat: &str, place: usize) -> Option<f64> {
    let (_, rest) = stat.rsplit_once(") ")?;
    let mut fields = rest.split(' ').skip(place);
    let (user, system): (f64, f64) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    Some(user + system)
}

fn time_of(ticks: f64) -> Duration {
    Duration::from_secs_f64(ticks / rustix::param::clock_ticks_per_second() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_linux_says_is_read() {
        let status = "Name:\tstint\nVmHWM:\t   20480 kB\nVmRSS:\t   10240 kB\n";
        assert_eq!(bytes_of(status, "VmRSS:"), Some(10 << 20));
        assert_eq!(bytes_of(status, "VmHWM:"), Some(20 << 20));
        assert_eq!(bytes_of(status, "VmSwap:"), None);
        let stat = "7 (a ) b) S 1 7 7 0 -1 4194560 100 0 0 0 150 50 30 7 20 0 4 0 100 1 1";
        assert_eq!(ticks_at(stat, OWN), Some(200.0));
        assert_eq!(ticks_at(stat, CHILDREN), Some(37.0));
    }

    #[test]
    fn a_process_uses_something() {
        let usage = Usage::of(std::process::id()).expect("this process runs");
        assert!(usage.resident > 0 && usage.peak >= usage.resident);
    }
}
