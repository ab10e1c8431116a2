//! The sets of hosts that stand for the registries of this machine's own package clients.

use crate::place::Place;
use ringfence_dialect::SetAnswer;
use ringfence_enforce::store::Store;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::OsString;

/// Asks for sets, each at most once a run, and only those that a policy names.
pub(crate) struct Sets<'a> {
    place: &'a Place,
    store: &'a Store,
    env: &'a [(OsString, OsString)],
    answers: RefCell<BTreeMap<String, SetAnswer>>,
}

impl<'a> Sets<'a> {
    pub(crate) fn new(place: &'a Place, store: &'a Store, env: &'a [(OsString, OsString)]) -> Self {
        Self { place, store, env, answers: RefCell::default() }
    }

    /// The rules of a set, named without its `@`.
    pub(crate) fn resolve(&self, name: &str) -> SetAnswer {
        if let Some(known) = self.answers.borrow().get(name) {
            return known.clone();
        }
        let answer = self.ask(name);
        self.answers.borrow_mut().insert(name.to_owned(), answer.clone());
        answer
    }

    fn ask(&self, name: &str) -> SetAnswer {
        let _ = (self.place, self.store, self.env);
        Err(format!("@{name}"))
    }
}
