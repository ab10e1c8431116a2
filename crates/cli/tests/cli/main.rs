//! Whole commands: exit status, standard output and standard error, as root and as an ordinary user.

mod bad_hosts;
mod bad_input;
mod passthrough;
mod scene;
mod verbs;
