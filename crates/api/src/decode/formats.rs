//! Texts with a meaning of their own: quantities and times, as far as reading
//! them goes. What they amount to is not known here.

/// Whether Kubernetes reads the text as a quantity. Its reader is laxer than its
/// documentation: a missing number is zero, and a number may end with a dot.
pub(super) fn is_quantity(text: &str) -> bool {
    if text.is_empty() {
        return false;
    }
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let after_whole = unsigned.trim_start_matches(|c: char| c.is_ascii_digit());
    let suffix = match after_whole.strip_prefix('.') {
        Some(fraction) => fraction.trim_start_matches(|c: char| c.is_ascii_digit()),
        None => after_whole,
    };
    match suffix {
        "" | "n" | "u" | "m" | "k" | "M" | "G" | "T" | "P" | "E" => true,
        "Ki" | "Mi" | "Gi" | "Ti" | "Pi" | "Ei" => true,
        _ => {
            suffix.strip_prefix(['e', 'E']).is_some_and(|exponent| exponent.parse::<i64>().is_ok())
        }
    }
}

/// Whether the text is a time as RFC 3339 has it: `2024-01-31T12:00:00Z`, with
/// an optional fraction of a second and either `Z` or an offset.
pub(super) fn is_rfc3339(text: &str) -> bool {
    let Some((date, time)) = text.split_once('T') else {
        return false;
    };
    let Some(clock_end) = time.find(['Z', '+', '-']) else {
        return false;
    };
    let (clock, zone) = time.split_at(clock_end);
    is_date(date) && is_clock(clock) && is_zone(zone)
}

fn is_date(date: &str) -> bool {
    let Some((year, rest)) = date.split_once('-') else {
        return false;
    };
    let Some((month, day)) = rest.split_once('-') else {
        return false;
    };
    let (Some(year), Some(month), Some(day)) = (number(year, 4), number(month, 2), number(day, 2))
    else {
        return false;
    };
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        2 if is_leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return false,
    };
    (1..=days).contains(&day)
}

fn is_clock(clock: &str) -> bool {
    let (whole, fraction) = match clock.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (clock, None),
    };
    let parts: Vec<Option<u32>> = whole.split(':').map(|part| number(part, 2)).collect();
    let is_right = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    matches!(parts[..], [Some(0..=23), Some(0..=59), Some(0..=59)]) && fraction.is_none_or(is_right)
}

fn is_zone(zone: &str) -> bool {
    let Some(offset) = zone.strip_prefix(['+', '-']) else {
        return zone == "Z";
    };
    match offset.split_once(':') {
        Some((hours, minutes)) => {
            number(hours, 2).is_some_and(|h| h <= 24) && number(minutes, 2).is_some_and(|m| m < 60)
        }
        None => false,
    }
}

/// A number of exactly so many digits.
fn number(text: &str, width: usize) -> Option<u32> {
    let is_right = text.len() == width && text.bytes().all(|b| b.is_ascii_digit());
    is_right.then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_told_from_other_texts() {
        for text in [
            "0", "1", "-1", "+1", "0.5", ".5", "1.", "500m", "1Gi", "1.5Gi", "2e3", "2E-3", "1E",
            "100n", "1k", "m",
        ] {
            assert!(is_quantity(text), "{text}");
        }
        for text in [
            "", " 1", "1 Gi", "1gi", "1GB", "1K", "1mm", "abc", "1e", "1e2.5", "1.2.3", "0x10", "½",
        ] {
            assert!(!is_quantity(text), "{text}");
        }
    }

    #[test]
    fn times_are_told_from_other_texts() {
        for text in [
            "2024-01-31T12:00:00Z",
            "2024-02-29T23:59:59.123456789Z",
            "2024-01-31T12:00:00+02:00",
            "0001-01-01T00:00:00-11:30",
        ] {
            assert!(is_rfc3339(text), "{text}");
        }
        for text in [
            "",
            "2024-01-31",
            "2024-01-31 12:00:00Z",
            "2024-01-31t12:00:00z",
            "2024-01-31T12:00:00",
            "2024-01-31T12:00Z",
            "2023-02-29T12:00:00Z",
            "2024-13-01T12:00:00Z",
            "2024-01-31T24:00:00Z",
            "2024-01-31T12:00:60Z",
            "2024-01-31T12:00:00.Z",
            "2024-01-31T12:00:00+0200",
            "2024-01-31T12:00:00Z[UTC]",
        ] {
            assert!(!is_rfc3339(text), "{text}");
        }
    }
}
