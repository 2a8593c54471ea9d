//! Which program this is: in `--version`, in the log, in metrics, and for the API server.

use stint_controller::Build;

/// Which program this is.
pub(crate) const BUILD: Build = Build {
    version: env!("CARGO_PKG_VERSION"),
    commit: env!("STINT_COMMIT"),
    build_date: env!("STINT_DATE"),
};

/// What `--version` says after the name.
pub(crate) const LONG_VERSION: &str =
    concat!(env!("CARGO_PKG_VERSION"), " (", env!("STINT_COMMIT"), " ", env!("STINT_DATE"), ")");

/// How it introduces itself to an API server, in the form of Kubernetes' own programs. What is
/// before the slash is the manager in managedFields.
pub(crate) fn user_agent() -> String {
    let architecture = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    };
    let Build { version, commit, .. } = BUILD;
    format!("stint/{version} ({}/{architecture}) {commit}", std::env::consts::OS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_user_agent_begins_with_the_manager_of_our_fields() {
        let agent = user_agent();
        assert!(agent.starts_with(concat!("stint/", env!("CARGO_PKG_VERSION"), " (")), "{agent}");
        assert!(http::HeaderValue::from_str(&agent).is_ok());
    }
}
