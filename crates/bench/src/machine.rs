//! The machine that was measured on, and how busy it was.

use std::fs;

use serde_json::{Value, json};

/// The machine.
#[derive(Clone, Debug)]
pub(crate) struct Machine {
    processor: String,
    cores: usize,
    memory_bytes: u64,
    system: String,
    /// How many processes wanted to run in the last minute, before and after.
    load_before: String,
    load_after: String,
    date: String,
}

impl Machine {
    /// This one, before anything is measured.
    pub(crate) fn look() -> Self {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let unknown = || "unknown".to_owned();
        let processor = field(&read("/proc/cpuinfo"), "model name").unwrap_or_else(unknown);
        let memory = field(&read("/proc/meminfo"), "MemTotal").unwrap_or_default();
        let kib: u64 = memory.trim_end_matches(" kB").parse().unwrap_or(0);
        let release = read("/proc/sys/kernel/osrelease");
        Machine {
            processor,
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            memory_bytes: kib << 10,
            system: format!("{} {}", std::env::consts::OS, release.trim()),
            load_before: load(),
            load_after: String::new(),
            date: jiff::Timestamp::now().strftime("%Y-%m-%d").to_string(),
        }
    }

    /// Looks again when all is measured.
    pub(crate) fn look_again(&mut self) {
        self.load_after = load();
    }

    pub(crate) fn words(&self) -> String {
        let Machine { processor, cores, system, load_before, load_after, date, .. } = self;
        let gib = self.memory_bytes as f64 / f64::from(1 << 30);
        format!(
            "{cores} cores ({processor}), {gib:.1} GiB, {system}; load {load_before} before and \
             {load_after} after; {date}"
        )
    }

    pub(crate) fn json(&self) -> Value {
        json!({
            "processor": self.processor, "cores": self.cores, "memory_bytes": self.memory_bytes,
            "system": self.system, "load_before": self.load_before, "load_after": self.load_after,
            "date": self.date,
        })
    }
}

/// The load of the last minute.
fn load() -> String {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().filter(|text| !text.is_empty()).unwrap_or("unknown").to_owned()
}

/// The value of the first line that begins with `name` and has a colon.
fn field(text: &str, name: &str) -> Option<String> {
    let line = text.lines().find(|line| line.starts_with(name))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_by_their_names() {
        let text = "vendor_id\t: A\nmodel name\t: A fast one\nMemTotal:   2048 kB\n";
        assert_eq!(field(text, "model name").as_deref(), Some("A fast one"));
        assert_eq!(field(text, "MemTotal").as_deref(), Some("2048 kB"));
        assert_eq!(field(text, "flags"), None);
    }
}
