#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    fairgate_fuzz::import(bytes);
});
