//! The built-in tables: credential stores, control sockets, protected names, withheld variables.
