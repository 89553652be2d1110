// Package selinux says when SELinux may be why a container cannot use a
// directory that its user could.
package selinux

import (
	"io/fs"
	"regexp"
	"strings"
)

var plain = regexp.MustCompile(`^[A-Za-z0-9_@%+=:,./-]+$`)

// Hint returns a sentence to append to the error about dir, and nothing on a
// machine where SELinux does not enforce. The file system is the root, with
// /sys mounted. Nothing is relabelled by us: that changes the user's files, and
// in a large or wrong tree it does harm.
func Hint(root fs.FS, dir string) string {
	b, err := fs.ReadFile(root, "sys/fs/selinux/enforce")
	if err != nil || strings.TrimSpace(string(b)) != "1" {
		return ""
	}
	if !plain.MatchString(dir) {
		dir = "'" + strings.ReplaceAll(dir, "'", `'\''`) + "'"
	}
	return "; SELinux is enforcing on this machine and denies containers a directory without their label, which a project's directory " +
		"(never a home directory) gets by `chcon -Rt container_file_t " + dir + "`"
}
