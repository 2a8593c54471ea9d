//! Where stint and the built-in controller may leave something different, and why.

/// A difference that is right.
#[derive(Debug)]
pub struct Excuse {
    /// The play; empty: every play.
    pub play: &'static str,
    /// How the lines begin that it excuses, after what they are about (`job`, `pods[0]`).
    pub path: &'static str,
    /// Why it is right.
    pub reason: &'static str,
}

/// All of them.
pub const EXCUSES: &[Excuse] = &[];

/// The excuse for a difference, if there is one.
pub fn find(play: &str, difference: &str) -> Option<&'static Excuse> {
    let is_meant = |excuse: &&Excuse| {
        let path = difference.trim_start_matches(|it| it != '.' && it != ':');
        (excuse.play.is_empty() || excuse.play == play) && path.starts_with(excuse.path)
    };
    EXCUSES.iter().find(is_meant)
}
