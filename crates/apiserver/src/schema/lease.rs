//! Leases.

use super::Type::{Int32, MicroTime, Object, Text};
use super::{METADATA, Message, always, one};

pub(super) const LEASE: Message = &[METADATA, always(2, "spec", Object(LEASE_SPEC))];

const LEASE_SPEC: Message = &[
    one(1, "holderIdentity", Text),
    one(2, "leaseDurationSeconds", Int32),
    one(3, "acquireTime", MicroTime),
    one(4, "renewTime", MicroTime),
    one(5, "leaseTransitions", Int32),
    one(6, "strategy", Text),
    one(7, "preferredHolder", Text),
];
