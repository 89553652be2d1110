// Package selinux says when SELinux may be why a container cannot use a
// directory that its user could.
package selinux

import (
	"errors"
	"io/fs"
	"os"
	"regexp"
	"strings"
)

var plain = regexp.MustCompile(`^[A-Za-z0-9_@%+=:,./-]+$`)

// Explain returns Hint for a command that a container could not start in dir,
// where err (with a method Denied) says that it was denied something.
func Explain(root fs.FS, runtime, dir string, err error) string {
	var failed interface {
		error
		Denied() bool
	}
	if runtime != "docker" || dir == "" || !errors.As(err, &failed) || !failed.Denied() {
		return ""
	}
	return Hint(root, dir)
}

// Machine is the root of this machine's file system.
func Machine() fs.FS { return os.DirFS("/") }

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
