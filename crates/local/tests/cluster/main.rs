//! The cluster as its clients see it: started as a whole, spoken to through its API, waited
//! for by watching.

mod accounts;
mod background;
mod binder;
mod bootstrap;
mod endpoints;
mod foreground;
mod gate;
mod kit;
mod leftovers;
mod namespaces;
mod orphans;
mod owners;
mod quotas;
mod scale;
