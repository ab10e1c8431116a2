//! Capabilities: all of them go, for good.

use crate::{Context, Errno, SysError};
use rustix::thread::{
    CapabilitiesSecureBits, CapabilitySet, CapabilitySets, clear_ambient_capability_set,
    remove_capability_from_bounding_set, set_capabilities, set_capabilities_secure_bits,
};

/// Empties the bounding and the ambient set, gives user 0 no meaning and locks that, then empties the permitted, effective
/// and inheritable sets (capabilities(7)). After this no execve(2) gains anything.
///
/// # Errors
/// `CAP_SETPCAP` is not there, or a call fails.
pub fn drop_all() -> Result<(), SysError> {
    for number in 0..64 {
        match remove_capability_from_bounding_set(CapabilitySet::from_bits_retain(1 << number)) {
            Ok(()) => {}
            // The first number that the kernel does not know (prctl(2), PR_CAPBSET_DROP).
            Err(Errno::INVAL) if number > 0 => break,
            Err(errno) => return Err(errno).at("prctl", || format!("PR_CAPBSET_DROP, {number}")),
        }
    }
    let bits = CapabilitiesSecureBits::NO_ROOT
        | CapabilitiesSecureBits::NO_ROOT_LOCKED
        | CapabilitiesSecureBits::NO_SETUID_FIXUP
        | CapabilitiesSecureBits::NO_SETUID_FIXUP_LOCKED
        | CapabilitiesSecureBits::KEEP_CAPS_LOCKED
        | CapabilitiesSecureBits::NO_CAP_AMBIENT_RAISE
        | CapabilitiesSecureBits::NO_CAP_AMBIENT_RAISE_LOCKED;
    set_capabilities_secure_bits(bits).at("prctl", || "PR_SET_SECUREBITS".to_owned())?;
    clear_ambient_capability_set().at("prctl", || "PR_CAP_AMBIENT_CLEAR_ALL".to_owned())?;
    let none = CapabilitySets {
        effective: CapabilitySet::empty(),
        permitted: CapabilitySet::empty(),
        inheritable: CapabilitySet::empty(),
    };
    set_capabilities(None, none).at("capset", || "none".to_owned())
}

/// Keeps nothing but the right to look into other processes, on this thread alone (capabilities(7): each thread has its
/// own sets).
///
/// # Errors
/// It is not held.
pub fn keep_tracing() -> Result<(), SysError> {
    let tracing = CapabilitySet::SYS_PTRACE;
    let sets = CapabilitySets { effective: tracing, permitted: tracing, inheritable: CapabilitySet::empty() };
    set_capabilities(None, sets).at("capset", || "CAP_SYS_PTRACE".to_owned())
}
