//! Endpoints as rows.

use k8s_openapi::api::core::v1::{EndpointSubset, Endpoints};
use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};

use super::{AGE, Column, NAME, NONE, duration, short_list, text};

/// The columns.
pub static COLUMNS: &[Column] = &[
    NAME,
    Column::new(
        "Endpoints",
        "The set of all endpoints is the union of all subsets. Addresses are placed into subsets \
         according to the IPs they share. A single address with multiple ports, some of which \
         are ready and some of which are not (because they come from different containers) will \
         result in the address being displayed in different subsets for the different ports. No \
         address will appear in both Addresses and NotReadyAddresses in the same subset. Sets of \
         addresses and ports that comprise a service.",
    ),
    AGE,
];

/// The cells of Endpoints.
pub fn cells(endpoints: &Endpoints, now: Timestamp) -> Vec<Value> {
    let metadata = &endpoints.metadata;
    let addresses = match endpoints.subsets.as_deref().unwrap_or_default() {
        [] => NONE.to_owned(),
        subsets => short_list::join(subsets.iter().flat_map(addresses)),
    };
    vec![
        json!(text(&metadata.name)),
        json!(addresses),
        json!(duration::since(metadata.creation_timestamp.as_ref(), now)),
    ]
}

/// The ready addresses of a subset, once for each port. A headless Service may have no ports.
fn addresses(subset: &EndpointSubset) -> Vec<String> {
    let ips = || subset.addresses.iter().flatten().map(|address| address.ip.as_str());
    match subset.ports.as_deref().unwrap_or_default() {
        [] => ips().map(str::to_owned).collect(),
        ports => ports.iter().flat_map(|port| ips().map(|ip| host_port(ip, port.port))).collect(),
    }
}

fn host_port(ip: &str, port: i32) -> String {
    if ip.contains(':') { format!("[{ip}]:{port}") } else { format!("{ip}:{port}") }
}
