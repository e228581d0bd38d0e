//! Gives the shared library its name for the dynamic linker. The number is that of the ABI
//! (`FAIRGATE_ABI_VERSION`).

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libfairgate.so.1");
}
