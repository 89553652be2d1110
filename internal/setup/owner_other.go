//go:build !unix

package setup

import (
	"io/fs"
	"os"
)

// sameOwner does nothing: a new file inherits from its directory.
func sameOwner(*os.File, fs.FileInfo, bool) error { return nil }
