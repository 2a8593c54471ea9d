//! What of a quota an object takes, and whether there is so much left: the rules of the admission
//! plugin ResourceQuota and of the controller that keeps the account.
//!
//! ```text
//!   object ─▶ Counted (usage, scopes, what it does not say) ─┐
//!                                                            ├─▶ charge ─▶ status.used, or why not
//!   ResourceQuota (status.hard, status.used, scopes) ────────┘
//! ```
//!
//! Which quotas and objects there are is not known here, nor who writes them.

mod charge;
mod scope;
mod usage;

pub use crate::resource_list::Amounts;
pub use charge::{Counted, Refusal, charge};
pub use scope::{PodScopes, has_deadline, is_in_scope};
pub use usage::{Tracked, pod_usage, pod_usage_ends_at, service_usage};
