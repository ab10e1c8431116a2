//! A refusal that an SSH client prints: an identification line and a disconnect message in clear.

/// The longest reason.
const REASON_MAX: usize = 200;
/// SSH_MSG_DISCONNECT (RFC 4253 section 11.1).
const MESSAGE_DISCONNECT: u8 = 1;
/// SSH_DISCONNECT_BY_APPLICATION.
const BY_APPLICATION: u32 = 11;

/// The bytes of a server that refuses (RFC 4253 sections 4.2, 6 and 11.1). Before keys are exchanged a packet has no
/// encryption and no checksum; its length is a multiple of 8 and it is padded with at least 4 bytes.
pub(crate) fn disconnect(reason: &str) -> Vec<u8> {
    let reason: Vec<u8> = reason.bytes().filter(|b| (0x20..0x7f).contains(b)).take(REASON_MAX).collect();
    let mut payload = vec![MESSAGE_DISCONNECT];
    payload.extend_from_slice(&BY_APPLICATION.to_be_bytes());
    payload.extend_from_slice(&u32::try_from(reason.len()).unwrap_or(0).to_be_bytes());
    payload.extend_from_slice(&reason);
    payload.extend_from_slice(&[0, 0, 0, 0]);
    let unpadded = 4 + 1 + payload.len();
    let padding = 4 + (8 - (unpadded + 4) % 8) % 8;
    let mut out = b"SSH-2.0-ringfence\r\n".to_vec();
    out.extend_from_slice(&u32::try_from(1 + payload.len() + padding).unwrap_or(0).to_be_bytes());
    out.push(u8::try_from(padding).unwrap_or(4));
    out.extend_from_slice(&payload);
    out.resize(out.len() + padding, 0);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_is_whole_blocks() {
        for length in 0..300 {
            let bytes = disconnect(&"x".repeat(length));
            let packet = &bytes[19..];
            assert_eq!(packet.len() % 8, 0);
            assert!(packet.len() >= 16);
            assert_eq!(usize::try_from(u32::from_be_bytes(packet[..4].try_into().unwrap())).unwrap(), packet.len() - 4);
            assert!(packet[4] >= 4);
        }
    }
}
