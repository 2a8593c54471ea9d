//! The audit log of kube-apiserver: who has asked for what.

use std::io;
use std::path::Path;

use serde::Deserialize;
use serde_json::Value;

/// A call.
#[derive(Clone, Debug)]
pub struct Call {
    /// Who has asked for it.
    pub user: String,
    /// `create pods`, `patch jobs/status`.
    pub what: String,
    /// The name of the object, or how it begins if the server was to make it up.
    pub name: String,
    /// The status code of the answer.
    pub code: u16,
    /// Which program it was, by its own words.
    pub agent: String,
    /// The object as it was answered, or else as it was asked for, where either is noted.
    pub object: Value,
    is_write: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    user: Who,
    verb: String,
    #[serde(default)]
    user_agent: String,
    object_ref: Target,
    #[serde(default)]
    request_object: Value,
    #[serde(default)]
    response_object: Value,
    #[serde(default)]
    response_status: Status,
}

#[derive(Deserialize)]
struct Who {
    username: String,
}

#[derive(Deserialize)]
struct Target {
    resource: String,
    #[serde(default)]
    subresource: String,
    #[serde(default)]
    name: String,
}

#[derive(Default, Deserialize)]
struct Status {
    #[serde(default)]
    code: u16,
}

/// All writes to Jobs, Pods and Events so far.
pub fn writes(folder: &Path) -> io::Result<Vec<Call>> {
    let mut calls = calls(folder)?;
    calls.retain(|call| call.is_write && !call.what.ends_with(" leases"));
    Ok(calls)
}

/// All writes so far, and what stint's controllers have read. A watch is told when it has ended.
pub fn calls(folder: &Path) -> io::Result<Vec<Call>> {
    let text = std::fs::read_to_string(folder.join("audit.log"))?;
    // The last line may be half written.
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    let call = |line: &str| {
        let entry: Entry = serde_json::from_str(line)?;
        let metadata = &entry.request_object["metadata"];
        let answered = &entry.response_object["metadata"]["name"];
        let in_body = [answered, &metadata["name"], &metadata["generateName"]];
        let name = in_body.into_iter().filter_map(Value::as_str).find(|name| !name.is_empty());
        let slash = if entry.object_ref.subresource.is_empty() { "" } else { "/" };
        let Target { resource, subresource, name: of_path } = entry.object_ref;
        let name = if of_path.is_empty() { name.unwrap_or_default().to_owned() } else { of_path };
        let what = format!("{} {resource}{slash}{subresource}", entry.verb);
        let is_write = !matches!(&*entry.verb, "get" | "list" | "watch");
        let code = entry.response_status.code;
        let (user, agent) = (entry.user.username, entry.user_agent);
        let object = match entry.response_object {
            Value::Null => entry.request_object,
            answer => answer,
        };
        Ok(Call { user, what, name, code, agent, object, is_write })
    };
    whole.lines().map(call).collect()
}
