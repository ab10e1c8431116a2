#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| ringfence_egress::fuzz::client_hello(bytes));
