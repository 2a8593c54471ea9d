//! The cluster as its clients see it: started as a whole, spoken to through its API, waited
//! for by watching.

mod background;
mod bootstrap;
mod foreground;
mod kit;
mod namespaces;
mod orphans;
mod owners;
mod scale;
