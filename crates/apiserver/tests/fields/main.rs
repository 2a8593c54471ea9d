//! Who owns what, without a server: sets of fields, what has changed, and apply. What the real
//! server says is in `tests/requests/apply.yaml`.

mod hostile;
mod laws;
mod sets;
mod table;
