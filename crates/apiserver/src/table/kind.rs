//! Which kinds have a table, and the table of a kind.

use std::borrow::Cow;

use k8s_openapi::jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Error, Value};

use super::service_account;
use super::{Column, RowCondition};
use super::{config_map, endpoint_slice, endpoints, event, events_event, job, lease};
use super::{limit_range, namespace, node, pod, resource_quota, secret, service};

/// How the objects of a kind become rows.
#[derive(Clone, Copy, Debug)]
pub struct TableKind {
    /// The columns.
    pub columns: &'static [Column],
    print: fn(&Value, Timestamp) -> Result<Printed, Error>,
}

/// What a row says of its object.
#[derive(Clone, Debug, PartialEq)]
pub struct Printed {
    /// One cell for each column.
    pub cells: Vec<Value>,
    /// What else there is to say.
    pub conditions: &'static [RowCondition],
}

impl TableKind {
    /// The row of an object, which must be of the kind. Fails if it is not.
    pub fn print(&self, object: &Value, now: Timestamp) -> Result<Printed, Error> {
        (self.print)(object, now)
    }
}

/// The table of a kind, if it has one.
pub fn of(api_version: &str, kind: &str) -> Option<TableKind> {
    Some(match (api_version, kind) {
        ("v1", "ConfigMap") => table!(config_map),
        ("v1", "Endpoints") => table!(endpoints),
        ("v1", "Event") => table!(event),
        ("v1", "LimitRange") => table!(limit_range),
        ("v1", "Namespace") => table!(namespace),
        ("v1", "Node") => table!(node),
        ("v1", "Pod") => TableKind { columns: pod::COLUMNS, print: print_pod },
        ("v1", "ResourceQuota") => table!(resource_quota),
        ("v1", "Secret") => table!(secret),
        ("v1", "Service") => table!(service),
        ("v1", "ServiceAccount") => table!(service_account),
        ("batch/v1", "Job") => table!(job),
        ("coordination.k8s.io/v1", "Lease") => table!(lease),
        ("discovery.k8s.io/v1", "EndpointSlice") => table!(endpoint_slice),
        ("events.k8s.io/v1", "Event") => {
            TableKind { columns: events_event::COLUMNS, print: print_events_event }
        }
        _ => return None,
    })
}

/// The table of a kind whose rows have no conditions.
macro_rules! table {
    ($kind:ident) => {
        TableKind {
            columns: $kind::COLUMNS,
            print: |object, now| {
                let cells = $kind::cells(&Deserialize::deserialize(object)?, now);
                Ok(Printed { cells, conditions: &[] })
            },
        }
    };
}
use table;

fn print_pod(object: &Value, now: Timestamp) -> Result<Printed, Error> {
    let object = Deserialize::deserialize(object)?;
    Ok(Printed { cells: pod::cells(&object, now), conditions: pod::conditions(&object) })
}

/// The type demands the time of a series. An older Event may have none, and is written with a
/// null: read that as Go does, as the time that stands for none.
fn print_events_event(object: &Value, now: Timestamp) -> Result<Printed, Error> {
    const UNSET: &str = "0001-01-01T00:00:00.000000Z";
    let mut object = Cow::Borrowed(object);
    let series = &object["series"];
    if series.is_object() && series["lastObservedTime"].is_null() {
        object.to_mut()["series"]["lastObservedTime"] = UNSET.into();
    }
    let cells = events_event::cells(&Deserialize::deserialize(&*object)?, now);
    Ok(Printed { cells, conditions: &[] })
}
