//! The controller on the embedded API server, in one process: no sockets, and time that passes
//! only when nobody has anything to do.

mod changes;
mod cluster;
mod fault;
mod faults;
mod kill;
mod leaving;
mod load;
mod modes;
mod random;
mod recall;
mod refused;
mod scenarios;
mod still;
mod tally;
mod weather;
