//! The controller on the embedded API server, in one process: no sockets, and time that passes
//! only when nobody has anything to do.

mod act;
mod changes;
mod cluster;
mod driver;
mod fault;
mod faults;
mod history;
mod kill;
mod load;
mod modes;
mod play;
mod random;
mod recall;
mod scenarios;
mod still;
mod tally;
mod weather;
