//! Plans over a host in memory, and the filter.

#[cfg(test)]
mod filter;
#[cfg(test)]
mod meaning;
#[cfg(test)]
mod plans;
#[cfg(test)]
mod refusals;
#[cfg(test)]
mod world;
