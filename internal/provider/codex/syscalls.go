package codex

// Syscalls are the system calls that Codex's own sandbox (bubblewrap) needs
// beyond the default seccomp profile. Each was found by removing it from a set
// that worked: without one, every command of a turn fails while the turn itself
// "completes". The user and mount namespaces that they make have no privilege
// outside.
func Syscalls() []string { return []string{"clone", "unshare", "mount", "umount2", "pivot_root"} }
