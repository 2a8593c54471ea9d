//! The agent on the embedded API server, in one process, with containers that only pretend: time
//! passes when nobody has anything to do. In `processes` they are real.

mod beginnings;
mod cluster;
mod containers;
mod ends;
mod fake;
mod many;
mod mishaps;
mod probes;
mod processes;
mod restarts;
mod still;
mod words;
