//! A plan as lines for people.
