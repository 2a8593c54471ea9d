//! Create: a new object under a name that is free.

use std::collections::HashSet;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ManagedFieldsEntry;
use stint_api::field_error::{FieldError, quote};
use stint_api::field_path::Path;
use stint_api::kinds::service::HEADLESS;
use stint_store::{Condition, Entry, StoreError, Write};

use super::charge::Failed;
use super::limit::check_limits;
use super::metadata;
use super::track::{Owners, Tracked};
use crate::api::{Api, Written, key, prefix, store_failed};
use crate::decode::{Decoded, MAX_WARNINGS};
use crate::kind::{AnyKind, Context, Part};
use crate::kinds;
use crate::object::Object;
use crate::request::write_options::WriteOptions;
use crate::status::Status;

/// How often a name is generated before the client is told that there is none left: as in
/// kube-apiserver. With 27^5 names to choose from, the second is free.
const NAME_ATTEMPTS: usize = 8;

/// The service account that every namespace has.
const DEFAULT_ACCOUNT: &str = "default";

impl Api {
    /// Makes a new object.
    pub(crate) async fn create(
        &self,
        kind: &dyn AnyKind,
        namespace: Option<&str>,
        decoded: Decoded<Box<dyn Object>>,
        options: WriteOptions,
    ) -> Result<Written, Status> {
        let owners = Owners::By(options.manager.clone());
        self.create_owned(kind, namespace, decoded, owners, &options).await
    }

    /// The same, where it may be known already who owns what.
    pub(super) async fn create_owned(
        &self,
        kind: &dyn AnyKind,
        namespace: Option<&str>,
        decoded: Decoded<Box<dyn Object>>,
        owners: Owners,
        options: &WriteOptions,
    ) -> Result<Written, Status> {
        let Decoded { object: mut asked, mut warnings } = decoded;
        let names = kind.names();
        let version = asked.meta().resource_version.as_deref().unwrap_or("");
        if !matches!(version, "" | "0") {
            let why = "resourceVersion should not be set on objects to be created";
            return Err(Status::bad_request(why));
        }
        metadata::set_namespace(asked.meta_mut(), names, namespace)?;
        warnings.extend(metadata::drop_repeated_owners(asked.meta_mut()));
        let name = asked.meta().name.clone().filter(|name| !name.is_empty());
        let name = name.or_else(|| asked.meta().generate_name.clone()).unwrap_or_default();
        let _addresses =
            if kind.manners().takes_address { Some(self.addresses.lock().await) } else { None };
        let mut home = self.check_namespace(names, namespace, &name)?;
        let is_applied = matches!(owners, Owners::Known(_));
        let Tracked { mut managed, given } = match owners {
            Owners::By(manager) => {
                self.tracker().track(kind, Part::Whole, None, asked.as_mut(), &manager)
            }
            Owners::Known(managed) => Tracked::known(managed),
        };
        let mut name = name;
        let mut names_left = NAME_ATTEMPTS;
        while names_left > 0 {
            let mut object = asked.copy();
            let is_generated = metadata::begin(object.meta_mut(), self.now());
            self.prepare_new(kind, object.as_mut(), given.as_deref())?;
            name = object.meta().name.clone().unwrap_or_default();
            let counted = self.counted(namespace, || kind.counted(object.as_ref(), self.now()));
            let stored = kind.to_stored(object.as_ref(), managed.as_deref().map(str::as_bytes))?;
            let key = key(kind, namespace, &name);
            if options.is_dry_run {
                self.check_quotas(namespace, counted.as_ref())
                    .map_err(|failed| failed.status(kind, &name))?;
                if let Some(entry) = self.store.get(&key) {
                    return Err(taken(kind, &name, Some(&entry)));
                }
                warn(&mut warnings, kind.warnings(object.as_ref()));
                return Ok(Written { stored, revision: None, is_new: true, warnings });
            }
            let mut write = Write::create(key, stored.clone());
            if let Some(home) = &home {
                write = write.guarded(home.key.clone(), Condition::At(home.modified));
            }
            let failed = match self.write_counted(namespace, counted, write).await {
                Ok(change) => {
                    let revision = Some(change.revision);
                    warn(&mut warnings, kind.warnings(object.as_ref()));
                    return Ok(Written { stored, revision, is_new: true, warnings });
                }
                Err(failed @ Failed::Refused(_)) => return Err(failed.status(kind, &name)),
                Err(Failed::Store(error)) => error,
            };
            match failed {
                // Whoever was faster may have deleted the namespace, or only labelled it.
                StoreError::Conflict { key, .. }
                    if home.as_ref().is_some_and(|home| home.key == key) =>
                {
                    home = self.check_namespace(names, namespace, &name)?;
                }
                // Who owns what is worth less than the object, unless it is applied.
                StoreError::TooLarge { .. } if managed.is_some() && !is_applied => {
                    managed = None;
                }
                StoreError::Conflict { .. } if is_generated => names_left -= 1,
                StoreError::Conflict { current, .. } => {
                    return Err(taken(kind, &name, current.as_deref()));
                }
                error => return Err(store_failed(error)),
            }
        }
        Err(Status::no_free_name(names, &name))
    }

    /// Applies the rules of its kind to a new object, with the managedFields that it was given.
    fn prepare_new(
        &self,
        kind: &dyn AnyKind,
        object: &mut dyn Object,
        given: Option<&[ManagedFieldsEntry]>,
    ) -> Result<(), Status> {
        let free_address = || self.free_address();
        let context = Context { gates: &self.gates, now: self.now(), free_address: &free_address };
        kind.admit(object).map_err(|why| {
            Status::forbidden(kind.names(), object.meta().name.as_deref().unwrap_or(""), why)
        })?;
        let ranges = self.limit_ranges(kind, object);
        for range in &ranges {
            kind.apply_limits(object, range);
        }
        self.check_account(kind, object)?;
        let own_address = address_of(kind, object);
        kind.prepare_for_create(object, &context);
        object.meta_mut().managed_fields = given.map(<[_]>::to_vec);
        let mut errors = kind.validate_create(object, &context);
        object.meta_mut().managed_fields = None;
        if let Some(address) =
            own_address.filter(|address| self.addresses_in_use().contains(address))
        {
            let why = format!("failed to allocate IP {address}: provided IP is already allocated");
            let path = Path::field("spec");
            errors.push(FieldError::invalid(&path.child("clusterIPs"), [&address], why));
        }
        if errors.is_empty() {
            return check_limits(kind, object, &ranges);
        }
        let name = object.meta().name.as_deref().unwrap_or("");
        Err(kind.invalid(name, &errors))
    }

    /// Refuses what names a service account that is not there, as the admission plugin
    /// ServiceAccount does. The one that every namespace has is taken to be there: if it is not,
    /// it will be in a moment, for which the plugin would wait.
    fn check_account(&self, kind: &dyn AnyKind, object: &dyn Object) -> Result<(), Status> {
        let Some(account) = kind.account(object).filter(|name| *name != DEFAULT_ACCOUNT) else {
            return Ok(());
        };
        let namespace = object.meta().namespace.as_deref();
        if self.store.get(&key(kinds::service_accounts(), namespace, account)).is_some() {
            return Ok(());
        }
        let why = format!(
            "error looking up service account {}/{account}: serviceaccount {} not found",
            namespace.unwrap_or_default(),
            quote(account),
        );
        Err(Status::forbidden(kind.names(), object.meta().name.as_deref().unwrap_or(""), why))
    }

    /// An address for a Service that no other has.
    pub(super) fn free_address(&self) -> Option<String> {
        let taken = self.addresses_in_use();
        // The range that kubeadm gives to Services; nothing is routed there on this machine.
        (1..=u16::MAX).find_map(|host| {
            let [high, low] = host.to_be_bytes();
            let address = format!("10.96.{high}.{low}");
            (!taken.contains(&address)).then_some(address)
        })
    }

    /// The addresses that Services have.
    fn addresses_in_use(&self) -> HashSet<String> {
        let services = kinds::services();
        let listing = self
            .store
            .list(&prefix(services, None), stint_store::Page::default())
            .expect("the newest revision can be read");
        let read = |entry: &Arc<Entry>| services.read_stored(&entry.value, entry.modified);
        listing
            .entries
            .iter()
            .filter_map(|entry| address_of(services, read(entry).as_ref()))
            .collect()
    }
}

/// Adds what is to be warned of in an object, as far as an answer has room for it.
pub(super) fn warn(warnings: &mut Vec<String>, more: Vec<String>) {
    let room = MAX_WARNINGS.saturating_sub(warnings.len());
    warnings.extend(more.into_iter().take(room));
}

/// The address that an object has or asks for.
fn address_of(kind: &dyn AnyKind, object: &dyn Object) -> Option<String> {
    if !kind.manners().takes_address {
        return None;
    }
    let address = kind.field(object, "spec.clusterIP");
    (!address.is_empty() && address != HEADLESS).then(|| address.into_owned())
}

/// Why a name cannot be given to a new object.
fn taken(kind: &dyn AnyKind, name: &str, current: Option<&Entry>) -> Status {
    let is_leaving = current.is_some_and(|entry| {
        let object = kind.read_stored(&entry.value, entry.modified);
        object.meta().deletion_timestamp.is_some()
    });
    if is_leaving {
        Status::still_exists(kind.names(), name)
    } else {
        Status::already_exists(kind.names(), name)
    }
}
